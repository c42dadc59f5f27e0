#include "hone/session/assemble_limited.h"

#include <limits>

#include "hone/base/cancel.h"
#include "hone/space/space.h"

namespace hone {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kSamples = 200;  // points of a space that are looked at for a good one

bool is_strassen(const schedule::Steps& steps) {
  return schedule::algorithm_of(steps).starts_with("strassen");
}

bool was_measured(const TaskSummary& line) {
  return line.source == "stored" || line.source == "tuned" || line.source == "shipped";
}

// Only the CPU's measure knows smaller sizes. Where memory is short, there is one schedule each.
std::vector<SizeVariants> variants_of_groups(const ModelTasks& model, const LimitedTasks& split,
                                             std::span<const schedule::Steps> steps,
                                             const CompileOptions& options) {
  std::vector<SizeVariants> variants(split.tasks.groups.size());
  if (model.target().kind() != target::Kind::kCpu || options.target.max_memory > 0) return variants;
  model.session->pool().parallel_for(std::ssize(variants), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    if (is_cancelled(options.interrupted)) return;
    const graph::TaskCall& call =
        split.tasks.calls[static_cast<size_t>(split.tasks.groups[g].calls[0])];
    const size_t before = split.group_before[g];
    VariantContext context{&model.tasks.varying, &model.target(),       model.accuracy(),
                           model.threads(),      options.advanced.seed, {}};
    context.predict = [&](const schedule::Steps& other) {
      const Result<double> seconds = predicted_seconds(model, before, other);
      return seconds.ok() ? *seconds : kNever;
    };
    // What a kernel with ends reads depends on its schedule, and the other kernels' limits are
    // those for this one.
    context.may_replace = !was_measured(model.summaries[before]) && split.limits[g].ends.empty();
    variants[g] = choose_variants(call, model.task(before), steps[g], split.limits[g], context);
  });
  return variants;
}

}  // namespace

Status keep_rows_apart(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                       const CompileOptions& options) {
  for (size_t g = 0; g < schedules.size(); ++g) {
    if (!is_strassen(schedules[g])) continue;
    HONE_RETURN_IF_ERROR(model.space(g).status());
    const space::Space& space = *model.space(g);
    std::vector<space::Point> points = space.default_points();
    Rng rng(options.advanced.seed);
    for (int i = 0; i < kSamples; ++i) points.push_back(space.sample(rng));
    double least = std::numeric_limits<double>::infinity();
    for (const space::Point& point : points) {
      schedule::Steps steps = space.steps(point);
      if (is_strassen(steps)) continue;
      const Result<double> seconds = predicted_seconds(model, g, steps);
      if (!seconds.ok() || !(*seconds < least)) continue;
      least = *seconds;
      schedules[g] = std::move(steps);
    }
    if (is_strassen(schedules[g])) schedules[g].clear();
    TaskSummary& line = model.summaries[g];
    line.seconds = 0;
    line.predicted_seconds = least;
    line.steps = schedule::to_string(schedules[g]);
  }
  return ok_status();
}

Result<Assembly> assemble_limited(ModelTasks& model, std::span<const schedule::Steps> schedules,
                                  const CompileOptions& options, const TogetherOptions& together) {
  const auto steps_of = [&](const graph::TaskCall& call) -> const schedule::Steps& {
    return schedules[static_cast<size_t>(call.group)];
  };
  ScheduledCalls calls;
  calls.mixes = [&](const graph::TaskCall& call) { return mixes_rows(steps_of(call)); };
  calls.lower = [&](const graph::TaskCall& call, const compute::Dag& dag) {
    return search::lower_schedule(dag, steps_of(call), model.target());
  };
  HONE_ASSIGN_OR_RETURN(const CallLimits limits, limits_of_calls(model.tasks, calls));
  const LimitedTasks split = split_groups(model.tasks, limits.kernels);
  std::vector<schedule::Steps> steps;
  TogetherOptions shared = together;
  shared.seconds.clear();
  for (const size_t g : split.group_before) {
    steps.push_back(schedules[g]);
    if (!together.seconds.empty()) shared.seconds.push_back(together.seconds[g]);
  }
  const std::vector<SizeVariants> variants = variants_of_groups(model, split, steps, options);
  for (size_t g = 0; g < shared.seconds.size(); ++g) {
    if (!variants[g].replaces_own) continue;
    const Result<double> seconds =
        predicted_seconds(model, split.group_before[g], *variants[g].replaces_own);
    if (seconds.ok()) shared.seconds[g] = *seconds;
  }
  HONE_ASSIGN_OR_RETURN(Assembly assembly,
                        assemble(*model.session, split.tasks, steps, options.interrupted, shared,
                                 HostKernels::kNone, {split.limits, variants, limits.runs}));
  for (const size_t g : assembly.replaced) {
    TaskSummary& line = model.summaries[split.group_before[g]];
    line.steps = schedule::to_string(*variants[g].replaces_own);
    line.source = "predicted";
    line.from.clear();
  }
  return assembly;
}

}  // namespace hone
