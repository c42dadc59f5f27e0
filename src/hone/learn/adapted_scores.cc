#include "hone/learn/adapted_scores.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hone/base/log.h"
#include "hone/base/rng.h"
#include "hone/learn/metrics.h"

namespace hone::learn {
namespace {

constexpr double kTop = 0.25;  // share of the schedules of a task that are its top
constexpr size_t kBatch = 8;   // schedules that a search measures before it asks again

struct Queries {
  std::vector<space::Candidate> candidates;
  std::vector<cost::Query> queries;
  std::vector<double> seconds;
};

// The schedules of a task in an order that depends on what they are alone.
Result<Queries> shuffled(const TaskTrials& task, const target::Target& target) {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i = 0; i < task.trials.size(); ++i)
    order.emplace_back(hash_combine(task.key, schedule::hash(task.trials[i].steps)), i);
  std::sort(order.begin(), order.end());
  Queries all;
  all.candidates.reserve(order.size());  // queries point into it
  for (const auto& [key, place] : order) {
    HONE_ASSIGN_OR_RETURN(space::Candidate candidate,
                          space::make_candidate(*task.dag, task.trials[place].steps));
    all.candidates.push_back(std::move(candidate));
    all.queries.push_back({&all.candidates.back(), &target, task.threads, task.key});
    all.seconds.push_back(task.trials[place].seconds);
  }
  return all;
}

Status tell(cost::CostModel& model, const Queries& all, size_t begin, size_t end) {
  for (size_t next; begin < end; begin = next) {
    next = std::min(end, begin + kBatch);
    std::vector<cost::Observation> observations;
    for (size_t i = begin; i < next; ++i) observations.push_back({all.queries[i], all.seconds[i]});
    HONE_RETURN_IF_ERROR(model.update(observations));
  }
  return ok_status();
}

// Adds the errors of one task.
void add(std::span<const double> measured, std::span<const double> predicted, AdaptedScore& score) {
  const std::vector<double> wanted = speeds(measured), said = speeds(predicted);
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] > wanted[b]; });
  order.resize(std::max<size_t>(1, static_cast<size_t>(kTop * static_cast<double>(order.size()))));
  std::vector<double> top_wanted, top_said;
  for (const size_t i : order) top_wanted.push_back(wanted[i]), top_said.push_back(said[i]);
  ++score.tasks;
  score.schedules += std::ssize(wanted);
  score.mse += squared_error(wanted, said);
  score.top_mse += squared_error(top_wanted, top_said);
  score.pair_accuracy += pair_accuracy(measured, predicted);
}

Status judge(const TaskTrials& task, const target::Target& target, std::span<const int> samples,
             const ModelMaker& make, std::vector<AdaptedScore>& scores) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, make());
  if (!model->learns() && samples.back() > 0)
    return invalid("the cost model {} does not learn from measurements", model->name());
  HONE_ASSIGN_OR_RETURN(const Queries all, shuffled(task, target));
  const auto most = static_cast<size_t>(samples.back());
  const std::span<const cost::Query> others = std::span(all.queries).subspan(most);
  size_t told = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto count = static_cast<size_t>(samples[i]);
    HONE_RETURN_IF_ERROR(tell(*model, all, told, count));
    told = count;
    HONE_ASSIGN_OR_RETURN(const std::vector<double> predicted, model->predict(others));
    add(std::span(all.seconds).subspan(most), predicted, scores[i]);
  }
  return ok_status();
}

}  // namespace

Result<std::vector<AdaptedScore>> adapted_scores(const Dataset& dataset,
                                                 const target::Target& target,
                                                 std::span<const int> samples,
                                                 const ModelMaker& make) {
  HONE_ASSERT(!samples.empty() && std::is_sorted(samples.begin(), samples.end()), "numbers ascend");
  std::vector<AdaptedScore> scores;
  for (const int count : samples) scores.push_back({.samples = count});
  const int64_t needed = int64_t{samples.back()} + kMinTrialsToJudge;
  int64_t most = 0;
  Status refused = ok_status();
  for (const TaskTrials& task : dataset.tasks) {
    most = std::max(most, std::ssize(task.trials));
    if (std::ssize(task.trials) < needed) continue;
    std::vector<AdaptedScore> with_task = scores;
    const Status judged = judge(task, target, samples, make, with_task);
    if (judged.code() == Code::kUnsupported) {  // the model cannot judge the task
      for (AdaptedScore& score : scores) ++score.refused;
      if (refused.ok())
        refused = error(Code::kUnsupported, "{}: {}", task.kernel_class, judged.message());
      continue;
    }
    HONE_RETURN_IF_ERROR(judged);
    scores = std::move(with_task);
  }
  if (scores[0].tasks == 0) HONE_RETURN_IF_ERROR(refused);
  if (!refused.ok())
    log_warning("{} tasks that the model cannot judge are left out: {}", scores[0].refused,
                refused.message());
  if (scores[0].tasks == 0) {
    return invalid(
        "no task has the {} schedules that {} samples and {} to judge by take, but {} at most",
        needed, samples.back(), kMinTrialsToJudge, most);
  }
  for (AdaptedScore& score : scores) {
    for (double* sum : {&score.mse, &score.top_mse, &score.pair_accuracy}) *sum /= score.tasks;
  }
  return scores;
}

}  // namespace hone::learn
