#include "hone/schedule/random_schedule_testing.h"

#include "hone/compute/dag_testing.h"

namespace hone::schedule {

compute::Dag random_dag(Rng& rng) {
  using namespace compute::testing;
  const auto size = [&](int64_t most) { return rng.between(1, most); };
  switch (rng.below(10)) {
    case 0: return gemm(size(9), size(19), size(13));
    case 1: {
      ConvShape shape{
          .h = size(6) + 2, .w = size(6) + 2, .ic = size(4), .oc = size(11), .stride = size(2)};
      shape.kernel = rng.chance(0.3) ? 1 : 3;
      shape.pad = shape.kernel == 1 && rng.chance(0.7) ? 0 : 1;
      if (rng.chance(0.2)) shape.kernel_w = 4 - shape.kernel;
      shape.border = rng.below(2);
      shape.residual = rng.chance(0.3);
      compute::Dag dag = conv2d(shape);
      if (rng.chance(0.5))
        dag.params[0].zeros = {0, shape.pad, shape.pad, 0, 0, shape.pad, shape.pad, 0};
      return dag;
    }
    case 2: return depthwise(size(6) + 1, size(6) + 1, size(18), size(2));
    case 3: return max_pool(size(7) + 1, size(7) + 1, size(9));
    case 4: return global_pool(size(4), size(4), size(20));
    case 5: return transpose(size(4), size(6), size(9), rng.below(2));
    case 6:
      return attention(size(2), size(9), rng.chance(0.3) ? 32 : size(17), size(5), rng.below(4));
    case 7:
      if (rng.chance(0.3)) return running_sum(size(9), size(6));
      return running_sum(size(3), size(6), size(19));
    case 8: return arg_max(size(3), size(9), size(19));
    default: return inverted_residual(size(6), size(5), size(3), size(9), size(4));
  }
}

namespace {

std::string random_loop(const StageState& stage, Rng& rng) {
  return stage.loops[rng.choice(stage.order)].name;
}

Layout random_layout(const StageState& stage, Rng& rng) {
  Layout layout{stage.name(), {}};
  std::vector<std::string> inner;
  for (const compute::Axis& axis : stage.info->stage.axes) {
    if (rng.chance(0.6)) {
      layout.dims.push_back(axis.var->name);
      continue;
    }
    const int64_t block = rng.between(2, 5);
    layout.dims.push_back(fmt::format("{}/{}", axis.var->name, block));
    inner.push_back(fmt::format("{}%{}", axis.var->name, block));
  }
  rng.shuffle(layout.dims);
  rng.shuffle(inner);
  layout.dims.insert(layout.dims.end(), inner.begin(), inner.end());
  return layout;
}

Reorder random_reorder(const StageState& stage, Rng& rng) {
  Reorder step{stage.name(), {}};
  std::vector<int> leaves = stage.order;
  rng.shuffle(leaves);
  leaves.resize(static_cast<size_t>(rng.between(1, static_cast<int64_t>(leaves.size()))));
  for (const int leaf : leaves) step.loops.push_back(stage.loops[leaf].name);
  return step;
}

Fuse random_fuse(const StageState& stage, Rng& rng) {
  const int64_t at = rng.below(static_cast<int64_t>(stage.order.size()));
  Fuse step{stage.name(), {stage.loops[stage.order[at]].name}};
  if (at + 1 < static_cast<int64_t>(stage.order.size()))
    step.loops.push_back(stage.loops[stage.order[at + 1]].name);
  return step;
}

Step random_step(const State& state, Rng& rng) {
  const StageState& stage = rng.choice(state.stages);
  const StageState& other = rng.choice(state.stages);
  const std::string loop = random_loop(stage, rng);
  switch (rng.below(17)) {
    case 0:
    case 1:
    case 2: {
      Split step{stage.name(), loop, {rng.between(1, 6)}, static_cast<Tail>(rng.below(4))};
      if (rng.chance(0.3)) step.lengths.push_back(rng.between(1, 4));
      return step;
    }
    case 3: return random_fuse(stage, rng);
    case 4:
    case 5: return random_reorder(stage, rng);
    case 6:
    case 7: return ComputeAt{stage.name(), other.name(), random_loop(other, rng)};
    case 8: return StoreAt{stage.name(), other.name(), random_loop(other, rng)};
    case 9: {
      const std::vector<compute::Axis>& axes = stage.info->stage.axes;
      return Fold{stage.name(), axes[rng.below(static_cast<int64_t>(axes.size()))].var->name,
                  rng.between(1, 6)};
    }
    case 10: return rng.chance(0.5) ? Step(Inline{stage.name()}) : Step(CacheWrite{stage.name()});
    case 11: {
      const auto& reads = stage.info->reads;
      if (reads.empty()) return Sink{stage.name(), loop};
      const std::string& buffer = reads[rng.below(static_cast<int64_t>(reads.size()))].buffer->name;
      return rng.chance(0.5) ? Step(CacheRead{buffer, stage.name()})
                             : Step(Im2col{stage.name(), buffer});
    }
    case 12: return SetScope{stage.name(), static_cast<ir::Scope>(rng.below(4))};
    case 13: return random_layout(stage, rng);
    case 14:
      if (rng.chance(0.2)) {
        return OnlineSoftmax{stage.name(), rng.between(1, 5),
                             rng.chance(0.5) ? KeyTiles::kShortEnd : KeyTiles::kWhole};
      }
      if (rng.chance(0.2)) return Winograd{stage.name(), rng.between(1, 5)};
      if (rng.chance(0.2)) {
        return Strassen{stage.name(), rng.choice(stage.info->axes).var->name, rng.between(1, 4)};
      }
      return RFactor{stage.name(), rng.choice(stage.info->axes).var->name, rng.between(1, 5),
                     rng.chance(0.5) ? Parts::kBlocks : Parts::kStrided};
    case 15:
      return rng.chance(0.5) ? Step(Vectorize{stage.name(), stage.loops[stage.order.back()].name})
                             : Step(Parallel{stage.name(), stage.loops[stage.order.front()].name});
    default: {
      const auto& reads = stage.info->reads;
      if (rng.chance(0.2) && !reads.empty()) {
        return Prefetch{stage.name(),
                        reads[rng.below(static_cast<int64_t>(reads.size()))].buffer->name, loop,
                        rng.between(1, 3)};
      }
      return Unroll{stage.name(), loop};
    }
  }
}

}  // namespace

Steps random_steps(const compute::Dag& dag, Rng& rng, int attempts) {
  State state = initial_state(dag);
  Steps steps;
  for (int i = 0; i < attempts; ++i) {
    const Step step = random_step(state, rng);
    Result<State> next = apply(step, state);
    if (!next.ok() || !infer_bounds(*next).ok()) continue;
    state = *std::move(next);
    steps.push_back(step);
  }
  return steps;
}

}  // namespace hone::schedule
