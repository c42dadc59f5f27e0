// Which sketches a space has.
#include <algorithm>

#include "hone/schedule/needed_flops.h"
#include "hone/space/finished_sketch.h"
#include "hone/space/rules/cpu/rules.h"
#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/roots.h"

namespace hone::space {
namespace {

// Smaller constants stay in a cache of the core's own: half their bytes gain nothing.
constexpr int64_t kNarrowBytes = 64 << 10;

// The arithmetic of a bilinear algorithm, all but the transforms; infinity for other sketches.
double bilinear_flops(const Task& task, const schedule::State& state) {
  double products = 0;
  for (const schedule::StageState& stage : state.stages) {
    if (!task.reduction.empty() && stage.name().starts_with(task.reduction + ".m"))
      products += compute::flops(stage.info->stage);
  }
  if (products == 0) return INFINITY;
  return compute::flops(task.dag) - compute::flops(task.stages.info(task.reduction)->stage) +
         products;
}

// The same sketch with its large constants in 16 bits; nothing if there are none.
std::optional<SketchBuilder> narrowed(SketchBuilder builder) {
  bool any = false;
  std::vector<std::string> constants;
  for (const schedule::StageState& stage : builder.state.stages) {
    const ir::Buffer& buffer = *stage.buffer();
    if (stage.info->constant && buffer.bytes() >= kNarrowBytes) constants.push_back(stage.name());
  }
  for (const std::string& stage : constants)
    any = builder.add_step(schedule::Narrow{stage, DType::kBF16}).ok() || any;
  return any ? std::optional(std::move(builder)) : std::nullopt;
}

}  // namespace

Result<std::shared_ptr<const Space::Sketch>> Space::Sketch::finish(
    SketchBuilder builder, const std::shared_ptr<const compute::Dag>& dag) {
  auto sketch = std::make_shared<Sketch>(
      Sketch{std::move(builder.state), std::move(builder.structure), std::move(builder.decisions),
             std::move(builder.groups), builder.for_threads});
  const std::vector<int> choices = sketch->default_choices();
  const schedule::Steps usual = sketch->steps(choices);
  sketch->usual_steps = usual.size();
  sketch->algorithm = schedule::algorithm_of(usual);
  HONE_RETURN_IF_ERROR(sketch->instantiate(choices, dag).status());
  return std::shared_ptr<const Sketch>(std::move(sketch));
}

Result<Space> Space::create(const compute::Dag& dag, const target::Target& target,
                            trial::Accuracy accuracy) {
  Space space;
  space.dag_ = std::make_shared<const compute::Dag>(dag);
  Task task{dag, accuracy, {target, schedule::initial_state(dag)}};
  space.least_flops_ = schedule::needed_flops(task.whole.state);
  const bool is_gpu = target.kind() == target::Kind::kGpu;
  std::vector<std::shared_ptr<const Sketch>> best, possible;
  const auto apply = [&](std::span<const Rule> rules, const SketchBuilder& start) -> Status {
    for (const Rule& rule : rules) {
      if (!rule.applies(task)) continue;
      SketchBuilder builder = start;
      const Fit fit = rule.build(builder, task);
      if (fit == Fit::kNone) continue;
      std::optional<SketchBuilder> narrow =
          accuracy == trial::Accuracy::kFast && !is_gpu ? narrowed(builder) : std::nullopt;
      const double flops = bilinear_flops(task, builder.state);
      Result<std::shared_ptr<const Sketch>> sketch = Sketch::finish(std::move(builder), space.dag_);
      if (!sketch.ok() && rule.optional) continue;
      HONE_RETURN_IF_ERROR(sketch.status());
      auto& sketches = fit == Fit::kPossible ? possible : best;
      sketches.push_back(*std::move(sketch));
      task.covered |= fit == Fit::kWhole;
      space.least_flops_ = std::min(space.least_flops_, flops);
      if (!narrow) continue;
      sketch = Sketch::finish(*std::move(narrow), space.dag_);
      if (sketch.ok()) sketches.push_back(*std::move(sketch));
    }
    return ok_status();
  };
  HONE_RETURN_IF_ERROR(apply(is_gpu ? gpu_task_rules() : cpu_task_rules(), task.whole));
  if (!task.covered) {
    HONE_RETURN_IF_ERROR(simplify(task, is_gpu));
    HONE_RETURN_IF_ERROR(apply(is_gpu ? gpu_stage_rules() : cpu_stage_rules(), task.stages));
  }
  space.sketches_ = std::move(best);
  space.sketches_.insert(space.sketches_.end(), possible.begin(), possible.end());
  return space;
}

}  // namespace hone::space
