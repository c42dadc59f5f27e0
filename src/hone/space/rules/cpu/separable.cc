// A depthwise convolution whose result only a pointwise one (1x1) reads, as one task: what lies
// between them never leaves the cache.
//
//   parallel blocks of rows:
//     depthwise convolution and what follows it: the block's rows, around a register tile
//     pointwise convolution and what follows it: likewise
#include <algorithm>

#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::State;
using schedule::Steps;

// The stages in topological order.
enum Part : uint8_t { kWindows, kBetween, kProduct, kResult, kParts };

class SeparableGroup : public Group {
 public:
  std::shared_ptr<Contraction> windows, product;

  [[nodiscard]] bool legal(const Choice& choice) const override {
    return windows->legal(choice) && product->legal(choice);
  }
  void set_default(MutableChoice& choice) const override {
    windows->set_default(choice);
    product->set_default(choice);
  }
  void canonicalise(MutableChoice& choice) const override {
    product->canonicalise(choice);
    windows->canonicalise(choice);  // as if for all rows: for a block's, more would be the same
  }
  void append_steps(const Choice& choice, Steps& steps) const override {
    product->append_steps(choice, steps);
    steps.push_back(
        schedule::ComputeAt{windows->epilogue, product->epilogue, product->rows_loop()});
    windows->append_steps(choice, steps);
  }
};

bool applies(const State& state) {
  static constexpr bool kReduces[kParts] = {true, false, true, false};
  if (state.stages.size() != kParts) return false;
  for (size_t i = 0; i < kParts; ++i) {
    const StageInfo& info = *state.stages[i].info;
    const bool last = i + 1 == kParts;
    if (info.stage.is_extern() || info.stage.where || info.constant ||
        info.stage.outputs.size() != 1 || info.stage.reduce.empty() == kReduces[i])
      return false;
    const schedule::StageList readers = state.readers(info.stage.outputs[0].buffer);
    if (readers != (last ? schedule::StageList{} : schedule::StageList{static_cast<int>(i) + 1}))
      return false;
  }
  return true;
}

}  // namespace

Fit add_separable(SketchBuilder& builder, const Task&) {
  if (!inline_chains(builder).ok()) return Fit::kNone;
  // Sums that nothing pointwise takes up get a stage that copies them.
  for (bool changed = true; changed;) {
    changed = false;
    for (const schedule::StageState& stage : builder.state.stages) {
      const compute::Stage& what = stage.info->stage;
      if (what.is_extern() || what.reduce.empty() || what.outputs.size() != 1) continue;
      const schedule::StageList readers = builder.state.readers(what.outputs[0].buffer);
      if (readers.size() == 1 &&
          builder.state.stages[static_cast<size_t>(readers[0])].info->stage.reduce.empty())
        continue;
      if (!builder.add_step(schedule::CacheWrite{stage.name()}).ok()) return Fit::kNone;
      changed = true;
      break;
    }
    if (builder.state.stages.size() > kParts) return Fit::kNone;
  }
  if (!applies(builder.state)) return Fit::kNone;
  const auto name = [&](Part part) { return builder.state.stages[part].name(); };
  const std::string windows = name(kWindows), between = name(kBetween), product = name(kProduct),
                    result = name(kResult);
  auto group = std::make_shared<SeparableGroup>();
  group->product = make_contraction(builder, result, product, {.by_rows = true});
  if (!group->product || group->product->roles.row < 0) return Fit::kNone;
  group->windows = make_contraction(builder, between, windows, {.nested = true});
  if (!group->windows) return Fit::kNone;
  builder.groups.push_back(std::move(group));
  return Fit::kWhole;
}

}  // namespace hone::space
