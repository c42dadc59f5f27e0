#include "hone/train_policy.h"

#include <algorithm>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/base/rng.h"
#include "hone/commands/training/training_data.h"
#include "hone/compute/class_family.h"
#include "hone/cost/registry.h"
#include "hone/learn/task_list.h"
#include "hone/search/policy_state.h"
#include "hone/search/stored_trials.h"
#include "hone/session/cost_models.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

// A task with what was measured of it.
struct Rehearsal {
  space::Space space;
  search::SearchTask task;  // all but its space
  std::vector<space::Point> points;
  std::vector<double> seconds;
};

Result<std::vector<Rehearsal>> load(MeasuredStore& store, const MeasuredData& data,
                                    const cost::CostModel& model, uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(db::TrialStore* const trials, store.open());
  search::TaskContext context;
  context.target = &data.target;
  context.device = data.device.key;
  context.version = kScheduleVersion;
  std::vector<Rehearsal> all;
  for (const learn::TaskTrials& task : data.dataset.tasks) {
    HONE_ASSIGN_OR_RETURN(space::Space space, space::Space::create(*task.dag, data.target));
    context.threads = task.threads;
    HONE_ASSIGN_OR_RETURN(search::StoredTrials stored,
                          search::read_stored_trials(*trials, task.key, context, space));
    if (stored.points.size() < 2) continue;
    search::SearchTask search{.target = &data.target,
                              .model = &model,
                              .threads = task.threads,
                              .key = task.key,
                              .seed = seed};
    search.family = compute::class_family(task.kernel_class);
    all.push_back(
        {std::move(space), std::move(search), std::move(stored.points), std::move(stored.seconds)});
  }
  return all;
}

Result<MeasuredData> chosen(MeasuredStore& store, const PolicyTrainOptions& options) {
  HONE_ASSIGN_OR_RETURN(MeasuredData data, store.load(options.device));
  HONE_RETURN_IF_ERROR(check_networks("--exclude-model", options.exclude_models,
                                      data.dataset.models(), data.device.text()));
  data.dataset = learn::without_models(
      data.dataset, {options.exclude_models.begin(), options.exclude_models.end()});
  if (!options.only.empty()) data.dataset = learn::tasks_among(data.dataset, options.only);
  return data;
}

}  // namespace

Result<PolicyTrainSummary> train_policy(const std::string& output,
                                        const PolicyTrainOptions& options) {
  const double start = real_clock().now_seconds();
  HONE_ASSIGN_OR_RETURN(const auto policy,
                        of_option("--search", search::make_policy(options.strategy)));
  HONE_RETURN_IF_ERROR(of_option("--search", policy->save()).status());
  if (!options.from.empty() && !file_exists(options.from))
    return error(Code::kNotFound, "--from {}: there is no such file", options.from);
  MeasuredStore store(options.db);
  HONE_ASSIGN_OR_RETURN(const MeasuredData data, chosen(store, options));
  if (!options.from.empty())
    HONE_RETURN_IF_ERROR(search::load_policy_state(options.from, data.target, *policy));
  std::string cost = options.cost;
  if (cost == cost::kAutoModel) cost = cost::default_model(data.target);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model,
                        make_cost_model({.cost = cost, .db = options.db}));
  HONE_RETURN_IF_ERROR(cost::check_knows(*model, cost, data.target));
  HONE_ASSIGN_OR_RETURN(std::vector<Rehearsal> tasks, load(store, data, *model, options.seed));
  if (tasks.empty())
    return invalid("no task with two stored schedules on device {} whose points are known",
                   data.device.text());
  PolicyTrainSummary summary{.tasks = std::ssize(tasks), .planned_epochs = options.epochs};
  for (const Rehearsal& one : tasks) summary.schedules += std::ssize(one.points);
  Rng rng(options.seed);
  const auto over = [&] {
    return options.budget_seconds > 0 &&
           real_clock().now_seconds() - start >= options.budget_seconds;
  };
  while (summary.epochs < options.epochs && !over()) {
    rng.shuffle(tasks);
    for (Rehearsal& one : tasks) {
      HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
      one.task.space = &one.space;
      policy->rehearse(one.task, one.points, one.seconds);
      if (over()) break;
    }
    ++summary.epochs;
    summary.seconds = real_clock().now_seconds() - start;
    if (options.on_epoch) options.on_epoch(summary);
  }
  HONE_RETURN_IF_ERROR(search::save_policy_state(output, data.target, *policy));
  return summary;
}

}  // namespace hone
