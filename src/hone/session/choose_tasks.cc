#include "hone/session/choose_tasks.h"

#include <algorithm>
#include <cmath>

#include "hone/search/prediction.h"

namespace hone {
namespace {

// How much faster a joined task must look: predictions favour it (docs/studies/convolutions.md).
constexpr double kJoinGain = 1.2;
// Beyond these gains a measurement has never said otherwise.
constexpr double kLeastDoubtful = 1.0, kMostDoubtful = 1.6;

}  // namespace

double TaskChooser::predicted(const compute::Dag& dag, uint64_t key) {
  const auto known = predicted_.find(key);
  if (known != predicted_.end()) return known->second;
  double seconds = INFINITY;
  const TaskPtr one = context_.tasks.get(dag, key);
  const Result<space::Space>& space = one->space(context_.accuracy);
  if (space.ok()) {
    const search::SearchTask task{&*space, &context_.target, &context_.cost, context_.threads,
                                  key,     context_.seed,    context_.pool};
    seconds = search::best_predicted(task, {.samples = 200, .climbers = 2}).seconds;
  }
  return predicted_[key] = seconds;
}

void TaskChooser::offer(const compute::Dag& dag, uint64_t key) {
  const auto known = std::find_if(alternatives_.begin(), alternatives_.end(),
                                  [&](const Alternative& a) { return a.task->key() == key; });
  if (known != alternatives_.end()) {
    ++known->multiplicity;
  } else {
    alternatives_.push_back({context_.tasks.get(dag, key), 1});
  }
}

// The joined task, the first and the second.
Decision TaskChooser::decide(const compute::Dag* const dags[3], const uint64_t keys[3]) {
  const auto before = context_.decided.find(keys[0]);
  if (before != context_.decided.end() && !before->second.doubtful) return before->second;
  double times[3] = {};
  bool all_measured = static_cast<bool>(context_.measured);
  for (size_t i = 0; i < 3 && all_measured; ++i) {
    const auto time = context_.measured(keys[i]);
    all_measured = time.has_value();
    times[i] = time.value_or(0);
  }
  if (all_measured) return {.joins = times[0] < times[1] + times[2]};
  for (size_t i = 0; i < 3; ++i) times[i] = predicted(*dags[i], keys[i]);
  const double gain = (times[1] + times[2]) / times[0];
  return {.joins = gain >= kJoinGain, .doubtful = gain >= kLeastDoubtful && gain <= kMostDoubtful};
}

bool TaskChooser::join(const compute::Dag& joined, const compute::Dag& first,
                       const compute::Dag& second) {
  const compute::Dag* dags[] = {&joined, &first, &second};
  const uint64_t keys[] = {compute::task_key(joined), compute::task_key(first),
                           compute::task_key(second)};
  weighed_.insert(std::begin(keys), std::end(keys));
  const Decision decision = decide(dags, keys);
  decisions_[keys[0]] = decision;
  if (!decision.doubtful) return decision.joins;
  if (decision.joins) {
    offer(first, keys[1]);
    offer(second, keys[2]);
  } else {
    offer(joined, keys[0]);
  }
  return decision.joins;
}

}  // namespace hone
