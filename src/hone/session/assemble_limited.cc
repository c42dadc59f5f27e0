#include "hone/session/assemble_limited.h"

#include <limits>

#include "hone/base/cancel.h"
#include "hone/session/shared_code.h"
#include "hone/session/size_tables.h"
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

}  // namespace

Status keep_rows_apart(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                       const CompileOptions& options) {
  for (size_t g = 0; g < schedules.size(); ++g) {
    if (!is_strassen(schedules[g]) || !may_lack_rows(model, g)) continue;
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

bool has_sizes(const ModelTasks& model) {
  const bool decided = !model.tasks.decided.empty() && model.target().kind() == target::Kind::kCpu;
  return decided || model.tasks.sizes >= 0;
}

bool has_variants(const ModelTasks& model, const CompileOptions& options) {
  return model.target().kind() == target::Kind::kCpu && options.target.max_memory == 0;
}

Result<LimitedModel> limit_model(const ModelTasks& model,
                                 std::span<const schedule::Steps> schedules) {
  const auto steps_of = [&](const graph::TaskCall& call) -> const schedule::Steps& {
    return schedules[static_cast<size_t>(call.group)];
  };
  ScheduledCalls calls;
  calls.mixes = [&](const graph::TaskCall& call) { return mixes_rows(steps_of(call)); };
  calls.lower = [&](const graph::TaskCall& call, const compute::Dag& dag) {
    return search::lower_schedule(dag, steps_of(call), model.target());
  };
  HONE_ASSIGN_OR_RETURN(CallLimits limits, limits_of_calls(model.tasks, calls));
  LimitedModel limited{split_groups(model.tasks, limits), {}, std::move(limits.runs)};
  for (const size_t g : limited.split.group_before) limited.steps.push_back(schedules[g]);
  return limited;
}

VariantContext variant_context(const ModelTasks& model, const LimitedModel& limited, size_t group,
                               const CompileOptions& options) {
  const size_t before = limited.split.group_before[group];
  VariantContext context{&model.tasks.varying, &model.target(),       model.accuracy(),
                         model.threads(),      options.advanced.seed, {}};
  context.predict = [&model, before](const schedule::Steps& other) {
    const Result<double> seconds = predicted_seconds(model, before, other);
    return seconds.ok() ? *seconds : kNever;
  };
  // What a kernel with ends reads depends on its schedule, and the other kernels' limits are those
  // for this one.
  context.may_replace = limited.split.limits[group].ends.empty();
  context.is_tuned = was_measured(model.summaries[before]);
  const uint64_t key = model.tasks.groups[before].key;
  if (!model.excluded.contains(key)) context.times = &model.session->size_times().of(key);
  return context;
}

// Only the CPU's measure knows smaller sizes. Where memory is short, there is one schedule each.
std::vector<SizeVariants> variants_of_groups(const ModelTasks& model, const LimitedModel& limited,
                                             const CompileOptions& options,
                                             const VariantScope& scope) {
  const LimitedTasks& split = limited.split;
  std::vector<SizeVariants> variants(split.tasks.groups.size());
  if (!has_variants(model, options)) return variants;
  // Predictions do not tell groups apart that differ only in where their results begin.
  const auto shared = scope.only
                          ? std::vector<std::optional<SharedCode>>(variants.size())
                          : find_shared_code(split.tasks, limited.steps, {.kernels = split.limits});
  const auto is_alike = [&](size_t g) {
    const size_t before = split.group_before[g];
    const uint64_t key = model.tasks.groups[before].key;
    return shared[g] && !was_measured(model.summaries[before]) &&
           (model.excluded.contains(key) || model.session->size_times().of(key).empty());
  };
  const auto follows = [&](size_t g) {
    return is_alike(g) && shared[g]->leader != g && is_alike(shared[g]->leader);
  };
  model.session->pool().parallel_for(std::ssize(variants), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    if (is_cancelled(options.interrupted)) return;
    if (scope.only ? split.group_before[g] != *scope.only : follows(g)) return;
    // A kernel that reads sizes that data decide has no variants: nothing measures it at others.
    if (!split.limits[g].decided.empty()) return;
    VariantContext context = variant_context(model, limited, g, options);
    context.may_replace = context.may_replace && scope.may_replace;
    const graph::TaskCall& call =
        split.tasks.calls[static_cast<size_t>(split.tasks.groups[g].calls[0])];
    variants[g] = choose_variants(call, model.task(split.group_before[g]), limited.steps[g],
                                  split.limits[g], context);
  });
  for (size_t g = 0; !scope.only && g < variants.size(); ++g)
    if (follows(g)) variants[g] = variants[shared[g]->leader];
  return variants;
}

Status load_size_times(const ModelTasks& model) {
  if (model.session->store() == nullptr) return ok_status();
  for (const graph::TaskGroup& group : model.tasks.groups) {
    if (model.excluded.contains(group.key)) continue;
    HONE_RETURN_IF_ERROR(model.session->size_times().load(*model.session->store(), group.key));
  }
  return ok_status();
}

Result<Assembly> assemble_limited(ModelTasks& model, std::span<const schedule::Steps> schedules,
                                  const CompileOptions& options, const TogetherOptions& together) {
  HONE_ASSIGN_OR_RETURN(const LimitedModel limited, limit_model(model, schedules));
  if (has_variants(model, options)) HONE_RETURN_IF_ERROR(load_size_times(model));
  const LimitedTasks& split = limited.split;
  TogetherOptions shared = together;
  shared.seconds.clear();
  for (const size_t g : split.group_before)
    if (!together.seconds.empty()) shared.seconds.push_back(together.seconds[g]);
  const std::vector<SizeVariants> variants = variants_of_groups(model, limited, options);
  for (size_t g = 0; g < shared.seconds.size(); ++g) {
    if (!variants[g].replaces_own) continue;
    const ComparedSize& largest = variants[g].compared.back();
    if (largest.is_measured) {
      shared.seconds[g] = largest.seconds.back();
      continue;
    }
    const Result<double> seconds =
        predicted_seconds(model, split.group_before[g], *variants[g].replaces_own);
    if (seconds.ok()) shared.seconds[g] = *seconds;
  }
  HONE_ASSIGN_OR_RETURN(Assembly assembly, assemble(*model.session, split.tasks, limited.steps,
                                                    options.interrupted, shared, HostKernels::kNone,
                                                    {split.limits, variants, limited.runs}));
  assembly.partial = partial_buffers(split);
  add_size_tables(limited, variants, assembly.uses, model);
  return assembly;
}

}  // namespace hone
