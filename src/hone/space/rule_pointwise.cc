#include <algorithm>

#include "hone/space/sketch.h"

namespace hone::space {
namespace {

// for the other axes, fused, in parallel:  for blocks of the vector axis:  vector
// or, where input and output are contiguous along different axes, so that the lines that a block
// touches stay in the cache:  for blocks of the vector axis:  for the other axes:  vector
class Pointwise : public Group {
 public:
  std::string stage;
  std::vector<compute::Axis> axes;
  std::vector<int64_t> vector_axes;  // candidates: unit stride in the output, then in the input
  int64_t lanes = 8;
  int d_axis = -1, d_width = -1, d_parallel = -1;
  int d_blocks_outside = -1;  // -1: there is no choice
  std::vector<Decision> own_decisions;

  [[nodiscard]] bool legal(const Choice&) const override { return true; }

  void set_default(std::vector<int>& choices) const override {
    // A short output axis (three colours) is no vector: prefer the longer of the first two.
    choices[d_axis] = 0;
    if (vector_axes.size() > 1 && axes[vector_axes[0]].extent < lanes &&
        axes[vector_axes[1]].extent > axes[vector_axes[0]].extent) {
      choices[d_axis] = 1;
    }
    choices[d_width] = nearest_option(own_decisions[d_width], lanes);
    choices[d_parallel] = static_cast<int>(own_decisions[d_parallel].options.size()) - 1;
  }

  void append_steps(const Choice& choice, schedule::Steps& steps) const override {
    const int64_t vector = choice[d_axis];
    const std::string& vec = axes[vector].var->name;
    const bool blocks_outside = d_blocks_outside >= 0 && choice[d_blocks_outside] == 1;
    // A loop in parallel is never peeled.
    const auto tail = blocks_outside ? schedule::Tail::kMask : schedule::Tail::kPeel;
    steps.push_back(schedule::Split{stage, vec, {choice[d_width]}, tail});
    std::vector<std::string> outer;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (static_cast<int64_t>(a) != vector) outer.push_back(axes[a].var->name);
    }
    outer.insert(blocks_outside ? outer.begin() : outer.end(), vec + ".0");
    std::vector<std::string> order = outer;
    order.push_back(vec + ".1");
    steps.push_back(schedule::Reorder{stage, order});
    const size_t depth = std::min<size_t>(outer.size(), static_cast<size_t>(choice[d_parallel]));
    outer.resize(std::max<size_t>(depth, 1));
    steps.push_back(schedule::Parallel{stage, fuse_loops(stage, outer, steps)});
    steps.push_back(schedule::Vectorize{stage, vec + ".1"});
  }
};

class Extern : public Group {
 public:
  std::string stage;
  std::vector<std::string> axes;
  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(std::vector<int>&) const override {}
  void append_steps(const Choice&, schedule::Steps& steps) const override {
    if (axes.empty()) return;
    const std::string fused = fuse_loops(stage, axes, steps);
    steps.push_back(schedule::Parallel{stage, fused});
  }
};

class Fallback : public Group {
 public:
  std::string stage;
  std::string parallel;  // "" if there is no spatial axis to run in parallel
  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(std::vector<int>&) const override {}
  void append_steps(const Choice&, schedule::Steps& steps) const override {
    if (!parallel.empty()) steps.push_back(schedule::Parallel{stage, parallel});
  }
};

}  // namespace

bool add_pointwise(SketchBuilder& builder, const std::string& stage) {
  const schedule::StageInfoPtr info = builder.state.stages[builder.state.find_stage(stage)].info;
  if (info->constant || info->stage.outputs.size() != 1 || info->stage.axes.empty()) return false;
  auto group = std::make_shared<Pointwise>();
  group->stage = stage;
  group->axes = info->stage.axes;
  group->lanes =
      builder.target.lanes(static_cast<int>(dtype_bytes(info->stage.outputs[0].buffer->dtype)));
  const int unit = unit_stride_axis(*info);
  if (unit >= 0) group->vector_axes.push_back(unit);
  for (const compute::Access& read : info->reads) {
    for (int a = 0; a < info->num_spatial(); ++a) {
      const bool fastest =
          !read.index.empty() && read.index.back().coef[a] == 1 && info->axes[a].extent > 1;
      if (fastest && std::count(group->vector_axes.begin(), group->vector_axes.end(), a) == 0)
        group->vector_axes.push_back(a);
    }
  }
  if (group->vector_axes.empty()) group->vector_axes.push_back(info->num_spatial() - 1);
  group->d_axis =
      builder.add_decision(stage, "vector_axis", DecisionKind::kVector, group->vector_axes);
  group->d_width = builder.add_decision(stage, "width", DecisionKind::kVector,
                                        {group->lanes, 2 * group->lanes, 4 * group->lanes});
  // The fused loop must not swallow the peeled loop over vectors, hence at most the other axes.
  std::vector<int64_t> depths;
  for (int64_t d = 1; d <= std::max<int64_t>(1, static_cast<int64_t>(group->axes.size()) - 1); ++d)
    depths.push_back(d);
  group->d_parallel = builder.add_decision(stage, "parallel", DecisionKind::kParallel, depths);
  if (group->vector_axes.size() > 1) {
    group->d_blocks_outside =
        builder.add_decision(stage, "blocks_outside", DecisionKind::kOrder, {0, 1});
  }
  group->own_decisions = builder.decisions;
  builder.groups.push_back(std::move(group));
  return true;
}

void add_extern(SketchBuilder& builder, const std::string& stage) {
  auto group = std::make_shared<Extern>();
  group->stage = stage;
  for (const compute::Axis& axis :
       builder.state.stages[builder.state.find_stage(stage)].info->stage.axes) {
    group->axes.push_back(axis.var->name);
  }
  builder.groups.push_back(std::move(group));
}

void add_fallback(SketchBuilder& builder, const std::string& stage) {
  const schedule::StageInfoPtr info = builder.state.stages[builder.state.find_stage(stage)].info;
  auto group = std::make_shared<Fallback>();
  group->stage = stage;
  if (!info->constant && !info->stage.axes.empty()) group->parallel = info->stage.axes[0].var->name;
  builder.groups.push_back(std::move(group));
}

}  // namespace hone::space
