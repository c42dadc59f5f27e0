#include "hone/learn/replay.h"

#include <cmath>
#include <map>
#include <unordered_map>

#include "hone/learn/evaluate.h"

namespace hone::learn {
namespace {

// Seconds by task and number of threads (0: any), then by the hash of the schedule's steps.
using Times = std::map<std::pair<uint64_t, int>, std::unordered_map<uint64_t, double>>;

// Share of a model's error on one device that it also has on the other; the rest is noise of the
// measurement.
constexpr double kTrust = 0.8;

class ReplayModel : public cost::CostModel {
 public:
  ReplayModel(Times times, bool any_threads, std::optional<Translation> translation)
      : times_(std::move(times)), any_threads_(any_threads), translation_(translation) {}

  [[nodiscard]] std::string_view name() const override { return "replay"; }

  [[nodiscard]] std::optional<double> find(uint64_t task, int threads,
                                           const schedule::Steps& steps) const {
    const auto known = times_.find({task, any_threads_ ? 0 : threads});
    if (known == times_.end()) return std::nullopt;
    const auto time = known->second.find(schedule::hash(steps));
    if (time == known->second.end()) return std::nullopt;
    return time->second;
  }

  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries) {
      const auto time = find(query.task, query.threads, query.candidate->steps);
      if (!time) return error(Code::kInternal, "a schedule that was not measured is replayed");
      seconds.push_back(*time);
    }
    if (translation_) HONE_RETURN_IF_ERROR(translate(queries, seconds));
    return seconds;
  }

  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  // Times of the other device become times of the one that is asked for.
  Status translate(std::span<const cost::Query> queries, std::vector<double>& seconds) const {
    std::vector<cost::Query> there(queries.begin(), queries.end());
    for (cost::Query& query : there) {
      query.target = translation_->other;
      if (translation_->threads > 0) query.threads = translation_->threads;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> here, translation_->model->predict(queries));
    HONE_ASSIGN_OR_RETURN(const std::vector<double> known, translation_->model->predict(there));
    for (size_t i = 0; i < seconds.size(); ++i)
      seconds[i] = here[i] * std::pow(seconds[i] / known[i], kTrust);
    return ok_status();
  }

  Times times_;
  bool any_threads_;
  std::optional<Translation> translation_;
};

void count(const Dataset& dataset, int64_t& tasks, int64_t& schedules) {
  for (const TaskTrials& task : dataset.tasks) {
    if (std::ssize(task.trials) < kMinTrialsToJudge) continue;
    ++tasks, schedules += std::ssize(task.trials);
  }
}

}  // namespace

Replay make_replay(const Dataset& dataset, const Dataset& other, bool any_threads,
                   std::optional<Translation> translation) {
  Times times;
  for (const TaskTrials& task : other.tasks) {
    auto& known = times[{task.key, any_threads ? 0 : task.threads}];
    for (const MeasuredSteps& trial : task.trials)
      known.emplace(schedule::hash(trial.steps), trial.seconds);
  }
  auto model = std::make_unique<ReplayModel>(std::move(times), any_threads, translation);
  Replay replay;
  replay.dataset = dataset;
  for (TaskTrials& task : replay.dataset.tasks) {
    std::erase_if(task.trials, [&](const MeasuredSteps& trial) {
      return !model->find(task.key, task.threads, trial.steps);
    });
  }
  count(dataset, replay.coverage.all_tasks, replay.coverage.all_schedules);
  count(replay.dataset, replay.coverage.tasks, replay.coverage.schedules);
  replay.model = std::move(model);
  return replay;
}

}  // namespace hone::learn
