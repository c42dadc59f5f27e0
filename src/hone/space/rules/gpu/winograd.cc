// A convolution by Winograd's algorithm (schedule/winograd.h), each of its steps in a phase of its
// own. E is the pointwise epilogue:
//
//   conv.v: for tiles and channels, in threads: the data's transform, in registers
//   conv.m: one matrix product per point, in tiles (contraction.h)
//   E: for tiles and channels, in threads: the transform back, in registers, and of its results
//      bias, activation, residual, store
//
// Neighbouring threads have neighbouring channels, which are neighbours in memory. The weights'
// transform runs at compile time.
#include "hone/space/rules/winograd.h"

#include <algorithm>

#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/roots.h"

namespace hone::space {
namespace {

using schedule::Steps;

// A small stage that each point of another one needs a part of.
struct Nested {
  std::string stage;
  std::vector<std::string> axes;
};

// They are computed inside of a loop of the stage, in registers.
void append_nested(const std::vector<Nested>& parts, const std::string& stage,
                   const std::string& loop, Steps& steps) {
  for (const Nested& part : parts) {
    steps.emplace_back(schedule::ComputeAt{part.stage, stage, loop});
    steps.emplace_back(schedule::SetScope{part.stage, ir::Scope::kRegister});
    for (const std::string& axis : part.axes)
      steps.emplace_back(schedule::Unroll{part.stage, axis});
  }
}

// A transform, each of whose tiles one thread computes in straight code.
class Transform : public Group {
 public:
  std::string stage;
  std::vector<std::string> outer;   // axes of tiles and channels, the contiguous one last
  std::vector<std::string> inside;  // axes of a tile
  // Axes of which a tile has so many results.
  std::vector<std::pair<std::string, int64_t>> cut;
  std::vector<Nested> nested;  // computed for each tile
  DecisionId d_threads;

  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(MutableChoice& choice) const override { choice.set(d_threads, 128); }

  void append_steps(const Choice& choice, Steps& steps) const override {
    std::vector<std::string> grid = outer, tile = inside;
    for (const auto& [axis, results] : cut) {
      steps.emplace_back(schedule::Split{stage, axis, {results}});
      *std::find(grid.begin(), grid.end(), axis) += ".0";
      tile.push_back(axis + ".1");
    }
    std::vector<std::string> loops = grid;
    loops.insert(loops.end(), tile.begin(), tile.end());
    steps.emplace_back(schedule::Reorder{stage, std::move(loops)});
    const std::string fused = fuse_loops(stage, grid, steps), thread = fused + ".1";
    steps.emplace_back(schedule::Split{stage, fused, {choice[d_threads]}});
    steps.emplace_back(schedule::Parallel{stage, fused + ".0"});
    steps.emplace_back(schedule::Bind{stage, thread});
    for (const std::string& loop : tile) steps.emplace_back(schedule::Unroll{stage, loop});
    append_nested(nested, stage, thread, steps);
  }
};

// The weights' transform, channel by channel, on the host.
class WeightTransform : public Group {
 public:
  std::string stage;
  std::vector<std::string> outer, points;
  std::vector<Nested> nested;

  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(MutableChoice&) const override {}
  void append_steps(const Choice&, Steps& steps) const override {
    std::vector<std::string> loops = outer;
    loops.insert(loops.end(), points.begin(), points.end());
    steps.emplace_back(schedule::Reorder{stage, std::move(loops)});
    for (const std::string& axis : points) steps.emplace_back(schedule::Unroll{stage, axis});
    append_nested(nested, stage, outer.back(), steps);
  }
};

// Returns the first half of a transform of two dimensions; none if there is one dimension.
std::vector<Nested> first_half(const SketchBuilder& builder, const std::string& stage) {
  if (builder.state.find_stage(stage) < 0) return {};
  return {{stage, names_of(builder.info(stage)->axes)}};
}

void add_transform(SketchBuilder& builder, Transform group) {
  group.d_threads = builder.add_decision(group.stage, "threads", DecisionKind::kParallel,
                                         {32, 64, 128, 256, 512});
  builder.groups.push_back(std::make_shared<Transform>(std::move(group)));
}

}  // namespace

Fit add_gpu_winograd(SketchBuilder& builder, const Task& task, int64_t outputs) {
  const std::string &e = task.epilogue, &conv = task.reduction;
  const std::vector<schedule::WinogradDim> dims = winograd_tiles(builder.state, conv, outputs);
  const schedule::StageInfoPtr info = builder.info(e);
  const int channel = unit_stride_axis(*info);
  const auto names = match_axes(*info, *builder.info(conv));
  if (dims.empty() || !names || channel < 0 || info->stage.where || info->constant ||
      info->stage.outputs.size() != 1)
    return Fit::kNone;
  const std::string& of_weights = (*names)[static_cast<size_t>(channel)];
  Transform back;
  back.stage = e;
  for (size_t a = 0; a < names->size(); ++a) {
    const std::string& own = info->axes[a].var->name;
    const bool slides = std::any_of(dims.begin(), dims.end(),
                                    [&](const auto& dim) { return dim.axis == (*names)[a]; });
    if (slides && static_cast<int>(a) == channel) return Fit::kNone;
    if (slides) back.cut.emplace_back(own, outputs);
    if (static_cast<int>(a) != channel) back.outer.push_back(own);
  }
  back.outer.push_back(info->axes[static_cast<size_t>(channel)].var->name);
  if (!builder.add_step(schedule::Winograd{conv, outputs}).ok() ||
      !builder.add_step(schedule::CacheWrite{conv + ".m"}).ok())
    return Fit::kNone;

  const size_t points = dims.size();
  WeightTransform weights;
  weights.stage = conv + ".u";
  std::vector<std::string> axes = names_of(builder.info(weights.stage)->axes);
  weights.points.assign(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(points));
  weights.outer.assign(axes.begin() + static_cast<std::ptrdiff_t>(points), axes.end());
  weights.nested = first_half(builder, conv + ".u1");
  const auto last = std::find(axes.begin(), axes.end(), of_weights);
  if (last == axes.end()) return Fit::kNone;
  std::rotate(last, last + 1, axes.end());
  if (!builder.add_step(schedule::Layout{weights.stage, std::move(axes)}).ok()) return Fit::kNone;

  Transform data;
  data.stage = conv + ".v";
  axes = names_of(builder.info(data.stage)->axes);
  data.inside.assign(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(points));
  data.outer.assign(axes.begin() + static_cast<std::ptrdiff_t>(points), axes.end());
  data.nested = first_half(builder, conv + ".v1");
  back.nested = {{conv, names_of(builder.info(conv)->axes)}};
  for (Nested& half : first_half(builder, conv + ".y1")) back.nested.push_back(std::move(half));

  if (!add_contraction_tiles(builder, conv + ".m", conv + ".m.acc")) return Fit::kNone;
  builder.groups.push_back(std::make_shared<WeightTransform>(std::move(weights)));
  add_transform(builder, std::move(data));
  add_transform(builder, std::move(back));
  return Fit::kPossible;
}

}  // namespace hone::space
