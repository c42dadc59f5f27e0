#include "hone/analysis/gpu_registers.h"

#include <algorithm>

namespace hone::analysis {
namespace {

using schedule::AttachKind;
using schedule::Place;
using schedule::StageState;

// When the stages inside of a root begin and end, in steps.
class Timeline {
 public:
  Timeline(const schedule::State& state, int root) : state_(state), times_(state.stages.size()) {
    run(root);
  }

  struct Time {
    int begin = 0, end = 0;
  };
  // Returns from when until when the registers of a stage are in use.
  [[nodiscard]] Time life(int s) const {
    Time life = times_[static_cast<size_t>(s)];
    for (const compute::Output& output :
         state_.stages[static_cast<size_t>(s)].info->stage.outputs) {
      for (const int reader : state_.readers(output.buffer))
        life.end = std::max(life.end, end_of_use(s, reader));
    }
    return life;
  }
  [[nodiscard]] int steps() const { return now_; }
  [[nodiscard]] bool has(int s) const { return times_[static_cast<size_t>(s)].end > 0; }

 private:
  // Those that are computed in outer loops run before those in the loops inside.
  void run(int s) {
    const StageState& stage = state_.stages[static_cast<size_t>(s)];
    std::vector<std::pair<int, int>> inside;  // position of the loop, stage
    for (size_t i = 0; i < state_.stages.size(); ++i) {
      const Place& place = state_.stages[i].compute;
      if (place.kind == AttachKind::kAt && place.stage == s)
        inside.emplace_back(stage.find_leaf(place.loop), static_cast<int>(i));
    }
    std::sort(inside.begin(), inside.end());
    times_[static_cast<size_t>(s)].begin = now_++;
    for (const auto& [position, child] : inside) run(child);
    times_[static_cast<size_t>(s)].end = now_++;
  }

  // Returns the end of a reader, or of the stage around it in the loop that has the storage of s.
  [[nodiscard]] int end_of_use(int s, int reader) const {
    const Place& store = state_.stages[static_cast<size_t>(s)].store;
    while (reader != store.stage) {
      const Place& at = state_.stages[static_cast<size_t>(reader)].compute;
      if (at.kind != AttachKind::kAt || (at.stage == store.stage && at.loop == store.loop)) break;
      reader = at.stage;
    }
    return times_[static_cast<size_t>(reader)].end;
  }

  const schedule::State& state_;
  std::vector<Time> times_;
  int now_ = 0;
};

// Returns the registers that a stage keeps its results in.
double registers_of(const schedule::State& state, const schedule::Bounds& bounds, int s,
                    double threads) {
  const StageState& stage = state.stages[static_cast<size_t>(s)];
  const bool is_fragment = stage.scope == ir::Scope::kFragment;
  if (!is_fragment && stage.scope != ir::Scope::kRegister && stage.scope != ir::Scope::kStack)
    return 0;
  double bytes = 0;
  const auto& outputs = stage.info->stage.outputs;
  for (size_t o = 0; o < outputs.size(); ++o) {
    double elements = 1;
    for (const int64_t d :
         schedule::storage_shape(stage, bounds.stages[static_cast<size_t>(s)], static_cast<int>(o)))
      elements *= static_cast<double>(d);
    bytes += elements * dtype_bytes(outputs[o].buffer->dtype);
  }
  bytes *= static_cast<double>(std::max<int64_t>(stage.pipeline_depth, 1));
  return bytes / 4 / (is_fragment ? threads : 1);
}

}  // namespace

double live_registers(const schedule::State& state, const schedule::Bounds& bounds, int root,
                      double threads) {
  const Timeline timeline(state, root);
  std::vector<double> used(static_cast<size_t>(timeline.steps()) + 1, 0);
  for (int s = 0; s < static_cast<int>(state.stages.size()); ++s) {
    if (s == root || !timeline.has(s)) continue;
    const double own = registers_of(state, bounds, s, threads);
    const Timeline::Time life = timeline.life(s);
    for (int t = life.begin; own > 0 && t <= life.end; ++t) used[static_cast<size_t>(t)] += own;
  }
  return *std::max_element(used.begin(), used.end());
}

}  // namespace hone::analysis
