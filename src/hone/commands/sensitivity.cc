#include "hone/commands/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <map>
#include <unordered_map>

#include "hone/base/cancel.h"
#include "hone/base/clock.h"
#include "hone/base/log.h"
#include "hone/db/sensitivity_store.h"
#include "hone/learn/representatives.h"
#include "hone/search/measure_schedules.h"
#include "hone/search/prediction.h"
#include "hone/search/sensitivity.h"
#include "hone/search/stored_trials.h"
#include "hone/space/subspace.h"

namespace hone {
namespace {

constexpr size_t kAtOnce = 8;  // schedules that are built and measured before the clock is asked

// A kernel of one of the models.
struct Kernel {
  const ModelTasks* model = nullptr;
  size_t group = 0;
  [[nodiscard]] uint64_t key() const { return model->tasks.groups[group].key; }
};

class Measuring {
 public:
  Measuring(Session& session, const SensitivityOptions& options)
      : session_(session), options_(options) {}
  Result<SensitivityReport> run(std::vector<graph::Graph> graphs);

 private:
  [[nodiscard]] Status find_kernels(std::vector<graph::Graph> graphs);
  [[nodiscard]] std::vector<Kernel> representatives() const;
  [[nodiscard]] Result<trial::TaskSensitivity> measure(const Kernel& kernel, double deadline);
  [[nodiscard]] Result<std::vector<double>> time(const Kernel& kernel, search::TaskTuner& tuner,
                                                 std::span<const space::Point> points,
                                                 double deadline);
  void summarise(std::span<const trial::TaskSensitivity> tasks);

  Session& session_;
  const SensitivityOptions& options_;
  Clock& clock_ = real_clock();
  const double start_ = clock_.now_seconds();
  std::unique_ptr<measure::Runner> local_;
  measure::Runner* runner_ = nullptr;
  std::deque<ModelTasks> models_;
  std::map<uint64_t, Kernel> kernels_;
  std::unordered_map<uint64_t, double> known_;  // seconds of the kernel's points, by their hash
  SensitivityReport report_;
};

Status Measuring::find_kernels(std::vector<graph::Graph> graphs) {
  for (graph::Graph& graph : graphs) {
    HONE_ASSIGN_OR_RETURN(ModelTasks made,
                          make_tasks(session_, std::move(graph), options_.compile));
    const ModelTasks& model = models_.emplace_back(std::move(made));
    for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
      const Result<space::Space>& space = model.space(g);
      if (space.ok() && !space::open_roles(*space).empty())
        kernels_.try_emplace(model.tasks.groups[g].key, Kernel{&model, g});
    }
  }
  if (kernels_.empty())
    return error(Code::kNotFound,
                 "the models have no kernel about which anything is to be decided");
  report_.found = static_cast<int>(kernels_.size());
  return ok_status();
}

std::vector<Kernel> Measuring::representatives() const {
  learn::Dataset all;
  for (const auto& [key, kernel] : kernels_) {
    const TaskPtr& task = kernel.model->distinct[kernel.group];
    learn::TaskTrials trials{.key = key, .kernel_class = task->kernel_class()};
    trials.dag = {task, &task->dag()};
    all.tasks.push_back(std::move(trials));
  }
  std::vector<Kernel> chosen;
  for (const ListedTask& task : learn::representatives(all, options_.tasks))
    chosen.push_back(kernels_.at(task.key));
  return chosen;
}

// Points that are stored or were measured before are not measured again. Those for which there is
// no time left have NaN.
Result<std::vector<double>> Measuring::time(const Kernel& kernel, search::TaskTuner& tuner,
                                            std::span<const space::Point> points, double deadline) {
  const space::Space& space = *kernel.model->space(kernel.group);
  std::vector<space::Point> unknown;
  for (const space::Point& point : points) {
    if (!known_.contains(space::hash(point)) &&
        std::find(unknown.begin(), unknown.end(), point) == unknown.end())
      unknown.push_back(point);
  }
  for (size_t i = 0; i < unknown.size(); i += kAtOnce) {
    HONE_RETURN_IF_ERROR(check_cancelled(options_.interrupted));
    if (clock_.now_seconds() >= deadline) {
      report_.left_out += static_cast<int>(unknown.size() - i);
      break;
    }
    const auto some = std::span(unknown).subspan(i, std::min(kAtOnce, unknown.size() - i));
    std::vector<schedule::Steps> schedules;
    for (const space::Point& point : some) schedules.push_back(space.steps(point));
    HONE_ASSIGN_OR_RETURN(
        const std::vector<double> seconds,
        search::measure_schedules(tuner, *runner_, schedules, options_.rounds, session_.pool()));
    for (size_t s = 0; s < some.size(); ++s) known_[space::hash(some[s])] = seconds[s];
    report_.measured += static_cast<int>(some.size());
  }
  std::vector<double> seconds;
  for (const space::Point& point : points) {
    const auto found = known_.find(space::hash(point));
    seconds.push_back(found == known_.end() ? NAN : found->second);
  }
  return seconds;
}

// The best point is the fastest stored one, or the one that the cost model predicts to be best.
Result<trial::TaskSensitivity> Measuring::measure(const Kernel& kernel, double deadline) {
  const ModelTasks& model = *kernel.model;
  const space::Space& space = *model.space(kernel.group);
  const search::TaskContext context = task_context(model, options_.compile.advanced.seed);
  search::TaskTuner tuner(tune_task(model, kernel.group), context, &session_.pool());
  HONE_RETURN_IF_ERROR(tuner.open(nullptr));
  known_.clear();
  std::optional<space::Point> best;
  if (session_.store() != nullptr) {
    HONE_ASSIGN_OR_RETURN(
        const search::StoredTrials stored,
        search::read_stored_trials(*session_.store(), kernel.key(), context, space));
    double least = INFINITY;
    for (size_t i = 0; i < stored.points.size(); ++i) {
      known_[space::hash(stored.points[i])] = stored.seconds[i];  // the newest record counts
      if (stored.seconds[i] < least) best = stored.points[i], least = stored.seconds[i];
    }
  }
  if (!best) {
    best = search::best_predicted(
               search_task(model, kernel.group, space, options_.compile.advanced.seed))
               .point;
  }
  const search::Evaluate evaluate = [&](std::span<const space::Point> points) {
    return time(kernel, tuner, points, deadline);
  };
  HONE_ASSIGN_OR_RETURN(trial::RoleEffects effects,
                        search::role_effects(space, best, evaluate,
                                             {.options = static_cast<size_t>(options_.options)}));
  const Task& task = model.task(kernel.group);
  const space::Point usual = space.default_point();
  const std::optional<trial::BoundScores> bounds = search::predict_bounds(
      search_task(model, kernel.group, space, options_.compile.advanced.seed), {&usual, 1})[0];
  return trial::TaskSensitivity{kernel.key(),
                                task.kernel_class(),
                                compute::describe(task.dag()),
                                session_.threads(),
                                std::time(nullptr),
                                std::move(effects),
                                bounds ? std::optional(bounds->memory) : std::nullopt};
}

void Measuring::summarise(std::span<const trial::TaskSensitivity> tasks) {
  std::map<std::string, RoleSensitivity> roles;
  for (const trial::TaskSensitivity& task : tasks) {
    for (const auto& [role, effect] : task.roles) {
      RoleSensitivity& sum = roles.try_emplace(role, RoleSensitivity{.role = role}).first->second;
      sum.gain += effect.gain, sum.loss += effect.loss, sum.score += effect.size();
      ++sum.tasks;
    }
  }
  for (auto& [role, sum] : roles) {
    sum.gain = std::expm1(sum.gain / sum.tasks), sum.loss = std::expm1(sum.loss / sum.tasks);
    sum.score /= sum.tasks;
    report_.roles.push_back(sum);
  }
  std::ranges::stable_sort(report_.roles, std::greater(), &RoleSensitivity::score);
}

Result<SensitivityReport> Measuring::run(std::vector<graph::Graph> graphs) {
  report_.device = session_.device(), report_.threads = session_.threads();
  HONE_RETURN_IF_ERROR(find_kernels(std::move(graphs)));
  const JobHooks& hooks = hooks_of(options_.compile);
  if (hooks.runner == nullptr) {
    HONE_ASSIGN_OR_RETURN(local_, session_.machine().make_runner(hooks.worker, session_.target()));
  }
  runner_ = hooks.runner != nullptr ? hooks.runner : local_.get();
  const std::vector<Kernel> chosen = representatives();
  const double end = start_ + options_.budget_seconds;
  std::vector<trial::TaskSensitivity> tasks;
  Status failed = ok_status();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double now = clock_.now_seconds();
    if (now >= end) break;
    // Each of those that are left gets an equal share of the time.
    const double share = (end - now) / static_cast<double>(chosen.size() - i);
    Result<trial::TaskSensitivity> task = measure(chosen[i], now + share);
    if (task.status().code() == Code::kCancelled) return task.status();
    if (!task.ok()) failed = task.status();
    if (!task.ok() || task->roles.empty()) continue;
    HONE_RETURN_IF_ERROR(
        db::save_sensitivities(options_.compile.records.db, report_.device, std::span(&*task, 1)));
    tasks.push_back(*std::move(task));
  }
  if (tasks.empty()) {
    HONE_RETURN_IF_ERROR(failed);
    return error(Code::kTimeout, "nothing was measured within the budget of {} s",
                 options_.budget_seconds);
  }
  if (!failed.ok()) log_warning("a kernel was left out: {}", failed.message());
  report_.tasks = static_cast<int>(tasks.size());
  summarise(tasks);
  report_.seconds = clock_.now_seconds() - start_;
  return std::move(report_);
}

}  // namespace

Result<SensitivityReport> measure_sensitivity(std::vector<graph::Graph> graphs,
                                              const SensitivityOptions& options) {
  if (!options.compile.records.use_db)
    return invalid("a database is needed: what is measured is stored there");
  if (!(options.budget_seconds > 0))
    return invalid("the budget is {} seconds, expected more than 0", options.budget_seconds);
  if (options.tasks < 1) return invalid("{} kernels, expected 1 or more", options.tasks);
  HONE_RETURN_IF_ERROR(check_measurable(options.compile));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::open(options.compile, {.store = SessionOptions::Store::kWrite}));
  return Measuring(*session, options).run(std::move(graphs));
}

Result<SensitivityReport> measure_sensitivity(const std::vector<std::string>& models,
                                              const SensitivityOptions& options) {
  if (models.empty()) return invalid("no model was named");
  std::vector<graph::Graph> graphs;
  for (const std::string& model : models) {
    HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile));
    graphs.push_back(std::move(graph));
  }
  return measure_sensitivity(std::move(graphs), options);
}

}  // namespace hone
