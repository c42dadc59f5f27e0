#include "hone/session/size_tables.h"

#include <algorithm>

#include "hone/base/cancel.h"
#include "hone/graph/size_options.h"

namespace hone {
namespace {

// The facts that are known of a kernel beside its variants.
struct KernelFacts {
  std::string steps;   // of its own schedule
  double seconds = 0;  // of that at the largest size
  bool is_measured = false;
  int calls = 0;
};

// Predictions of the static measure become those of the cost model, or the measured time, at the
// largest size.
std::vector<SizeTable::Time> times_of(const SizeVariants& variants, size_t schedule,
                                      const KernelFacts& facts) {
  const ComparedSize& largest = variants.compared.back();
  const auto is_measured = [](const ComparedSize& size) { return size.is_measured; };
  const bool predicted =
      std::none_of(variants.compared.begin(), variants.compared.end(), is_measured);
  const double scale = predicted && facts.seconds > 0 ? facts.seconds / largest.seconds.back() : 1;
  std::vector<SizeTable::Time> times;
  for (const ComparedSize& size : variants.compared) {
    const bool is_known = &size == &largest && schedule + 1 == largest.seconds.size();
    times.push_back(
        {scale * size.seconds[schedule], size.is_measured || (is_known && facts.is_measured)});
  }
  return times;
}

SizeTable table_of(const graph::Varying& varying, const SizeVariants& variants,
                   const VariantUse& use, const KernelFacts& facts) {
  SizeTable table;
  table.decided_by = graph::form_text(varying, varying.forms[static_cast<size_t>(variants.form)]);
  table.calls = facts.calls;
  for (const ComparedSize& size : variants.compared)
    table.points.push_back({size.value, graph::run_text(varying, size.symbols)});
  int64_t from = variants.compared.front().value;
  for (size_t i = 0; use.has_others && i < variants.others.size(); ++i) {
    const SizeVariant& other = variants.others[i];
    table.rows.push_back(
        {from, other.when.most, schedule::to_string(other.steps), times_of(variants, i, facts)});
    from = other.when.most + 1;
  }
  table.rows.push_back({from, variants.compared.back().value, facts.steps,
                        times_of(variants, variants.others.size(), facts)});
  return table;
}

// Sets the schedule of a task that takes the place of its own one.
void replace_own(const schedule::Steps& steps, const ComparedSize& largest, ModelTasks& model,
                 size_t group) {
  TaskSummary& line = model.summaries[group];
  line.steps = schedule::to_string(steps);
  if (largest.is_measured) {
    line.seconds = largest.seconds.back();
    return;
  }
  line.source = "predicted";
  line.from.clear();
  const Result<double> seconds = predicted_seconds(model, group, steps);
  line.predicted_seconds = seconds.ok() ? *seconds : 0;
}

}  // namespace

void add_size_tables(const LimitedModel& limited, std::span<const SizeVariants> variants,
                     std::span<const VariantUse> uses, ModelTasks& model) {
  const std::vector<TaskSummary> known = model.summaries;  // before schedules are replaced
  for (TaskSummary& line : model.summaries) line.sizes.clear();
  for (size_t g = 0; g < variants.size(); ++g) {
    const SizeVariants& chosen = variants[g];
    const size_t before = limited.split.group_before[g];
    TaskSummary& line = model.summaries[before];
    // Times of schedules that read other weights than the kernel's own say nothing of it.
    if (chosen.compared.empty() || (chosen.replaces_own && !uses[g].replaces_own)) continue;
    KernelFacts facts = {schedule::to_string(limited.steps[g]), known[before].known_seconds(),
                         known[before].seconds > 0,
                         static_cast<int>(limited.split.tasks.groups[g].calls.size())};
    if (chosen.replaces_own) {
      replace_own(*chosen.replaces_own, chosen.compared.back(), model, before);
      facts.steps = line.steps;
      facts.seconds = line.known_seconds();
      facts.is_measured = chosen.compared.back().is_measured;
    }
    line.sizes.push_back(table_of(model.tasks.varying, chosen, uses[g], facts));
  }
}

Status find_size_tables(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                        const CompileOptions& options, const VariantScope& scope) {
  if (model.tasks.sizes < 0 || !has_variants(model, options)) return ok_status();
  HONE_RETURN_IF_ERROR(keep_rows_apart(model, schedules, options));
  HONE_ASSIGN_OR_RETURN(const LimitedModel limited, limit_model(model, schedules));
  HONE_RETURN_IF_ERROR(load_size_times(model));
  const std::vector<SizeVariants> variants = variants_of_groups(model, limited, options, scope);
  std::vector<VariantUse> uses(variants.size());
  std::vector<Status> statuses(variants.size());
  model.session->pool().parallel_for(std::ssize(variants), [&](int64_t i) {
    const auto g = static_cast<size_t>(i);
    if (is_cancelled(options.interrupted)) return;
    if (variants[g].others.empty() && !variants[g].replaces_own) return;
    const TaskPtr& task = model.distinct[limited.split.group_before[g]];
    const KernelLimits& limits = limited.split.limits[g];
    const auto compile = [&](const schedule::Steps& steps) {
      return limited_kernel(*model.session, task, steps, limits);
    };
    const Result<VariedKernel> made =
        compile_varied(limited.steps[g], &variants[g], task->dag(), limits, compile);
    if (made.ok())
      uses[g] = made->use;
    else
      statuses[g] = made.status();
  });
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  for (const Status& status : statuses) HONE_RETURN_IF_ERROR(status);
  add_size_tables(limited, variants, uses, model);
  return ok_status();
}

}  // namespace hone
