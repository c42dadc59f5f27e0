#include <algorithm>

#include "hone/base/cancel.h"
#include "hone/commands/own/point_conversion.h"
#include "hone/commands/own/task_state.h"
#include "hone/model_task.h"
#include "hone/space/space.h"

namespace hone {
namespace {

constexpr size_t kAtOnce = 8;  // points that are built and measured before the flag is looked at

Status make_tuner(ModelWithTasks& model, size_t group) {
  HONE_RETURN_IF_ERROR(make_runner(model));
  if (model.tuner && model.tuned_group == group) return ok_status();
  model.tuner = std::make_unique<search::TaskTuner>(tune_task(model.tasks, group), model.context,
                                                    &model.session->pool());
  model.tuned_group = group;
  const Status opened = model.tuner->open(nullptr);
  if (!opened.ok()) model.tuner.reset();
  return opened;
}

void keep_faster(const measure::Measurement& answer, PointTime& time) {
  if (answer.outcome != trial::Outcome::kOk) {
    time.outcome = trial::outcome_name(answer.outcome);
    time.message = answer.message;
    time.seconds = time.low = time.high = INFINITY;
  } else if (time.outcome.empty() || answer.timing.centre < time.seconds) {
    time = {answer.timing.centre, answer.timing.low, answer.timing.high, "ok", ""};
  }
}

// Measures schedules in turns. One that failed is not run again.
Status measure_some(ModelWithTasks& model, std::span<const schedule::Steps> schedules, int rounds,
                    std::span<PointTime> times) {
  HONE_ASSIGN_OR_RETURN(std::vector<search::Candidate> candidates,
                        model.tuner->candidates_of(schedules));
  model.session->pool().parallel_for(std::ssize(candidates), [&](int64_t i) {
    model.tuner->build(candidates[static_cast<size_t>(i)]);
  });
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].runs())
      keep_faster(measure::failed(i, trial::Outcome::kCompile, candidates[i].status.message()),
                  times[i]);
  }
  for (int round = 0; round < rounds; ++round) {
    std::vector<measure::Job> jobs;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!times[i].outcome.empty() && times[i].outcome != "ok") continue;
      jobs.push_back(candidates[i].job);
      jobs.back().id = i;
    }
    HONE_RETURN_IF_ERROR(model.runner->submit(std::move(jobs)));
    HONE_ASSIGN_OR_RETURN(const std::vector<measure::Measurement> answers, model.runner->collect());
    for (const measure::Measurement& answer : answers) keep_faster(answer, times[answer.id]);
  }
  return ok_status();
}

}  // namespace

Status make_runner(ModelWithTasks& model) {
  if (model.runner) return ok_status();
  HONE_RETURN_IF_ERROR(
      model.session->machine().find_measurable(model.options.target.device).status());
  HONE_ASSIGN_OR_RETURN(model.runner, model.session->machine().make_runner(
                                          hooks_of(model.options).worker, model.session->target()));
  model.context = task_context(model.tasks, model.options.advanced.seed);
  return ok_status();
}

Result<std::vector<PointTime>> ModelTask::measure(const PointRows& points,
                                                  const MeasurePointsOptions& options) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<space::Point> asked, from_rows(state_->space, points));
  if (options.rounds < 1) return invalid("{} rounds, expected 1 or more", options.rounds);
  if (!state_->opened)
    return invalid("a task of a search is measured by the search, expected one of model_tasks()");
  ModelWithTasks& model = *state_->opened;
  const std::lock_guard lock(model.measuring);
  HONE_RETURN_IF_ERROR(make_tuner(model, state_->group));
  std::vector<PointTime> times(asked.size());
  for (size_t i = 0; i < asked.size(); i += kAtOnce) {
    HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
    std::vector<schedule::Steps> schedules;
    for (size_t p = i; p < std::min(i + kAtOnce, asked.size()); ++p)
      schedules.push_back(state_->space.steps(asked[p]));
    HONE_RETURN_IF_ERROR(measure_some(model, schedules, options.rounds,
                                      std::span(times).subspan(i, schedules.size())));
  }
  return times;
}

Result<std::vector<ModelTask>> model_tasks(const std::string& model,
                                           const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options));
  return model_tasks(std::move(graph), options);
}

Result<std::vector<ModelTask>> model_tasks(graph::Graph graph, const CompileOptions& options) {
  auto opened = std::make_shared<ModelWithTasks>();
  HONE_ASSIGN_OR_RETURN(opened->session,
                        Session::open(options, {.store = SessionOptions::Store::kNone}));
  HONE_ASSIGN_OR_RETURN(opened->tasks, make_tasks(*opened->session, std::move(graph), options));
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  opened->options = options;
  opened->options.interrupted = nullptr;  // it is of this call
  const Session& session = *opened->session;
  const auto target = std::make_shared<const target::Target>(session.target());
  const auto models =
      std::make_shared<NamedModels>(options.records.use_db ? &options.records.db : nullptr);
  std::vector<ModelTask> tasks;
  for (size_t g = 0; g < opened->tasks.distinct.size(); ++g) {
    const Result<space::Space>& space = opened->tasks.space(g);
    if (!space.ok()) continue;
    const TaskSummary& summary = opened->tasks.summaries[g];
    TaskInfo info = describe_task(opened->tasks.dag(g), *space, *target);
    info.key = summary.key, info.name = summary.name, info.multiplicity = summary.multiplicity;
    info.threads = session.threads(), info.seed = options.advanced.seed;
    // The task lives as long as the model that it is of.
    const std::shared_ptr<const compute::Dag> dag(opened, &opened->tasks.dag(g));
    tasks.emplace_back(
        std::make_shared<ModelTask::State>(ModelTask::State{.info = std::move(info),
                                                            .space = *space,
                                                            .sketches = sketches_of(*space),
                                                            .dag = dag,
                                                            .target = target,
                                                            .models = models,
                                                            .opened = opened,
                                                            .group = g}));
  }
  if (tasks.empty()) return error(Code::kNotFound, "the model {} has no tasks", opened->tasks.name);
  return tasks;
}

}  // namespace hone
