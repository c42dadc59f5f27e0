// choose_tasks.h - whether two tasks of a model become one where the partition offers it (a
// depthwise convolution and the pointwise one behind it): by measured times where they are known,
// else by predicted ones.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "hone/base/thread_pool.h"
#include "hone/cost/cost_model.h"
#include "hone/graph/tasks.h"
#include "hone/session/task.h"

namespace hone {

// The best measured seconds of a task, by its key; nothing if it was never measured.
using Measured = std::function<std::optional<double>(uint64_t task)>;

// Of the joined task's key: whether it took the place of two, and whether that is to be measured.
struct Decision {
  bool joins = false, doubtful = false;
};
using Decisions = std::map<uint64_t, Decision>;

struct ChooseContext {
  TaskTable& tasks;
  const target::Target& target;
  const cost::CostModel& cost;
  int threads;
  trial::Accuracy accuracy;
  uint64_t seed;
  Measured measured = {};
  Decisions decided = {};      // before: those that were not doubtful hold
  ThreadPool* pool = nullptr;  // helps with predictions; may be null
};

// A task that is not in the partition although it may be the faster choice: what a tuner measures
// beside those that are.
struct Alternative {
  TaskPtr task;
  int multiplicity = 0;
};

class TaskChooser {
 public:
  explicit TaskChooser(const ChooseContext& context) : context_(context) {}

  [[nodiscard]] bool join(const compute::Dag& joined, const compute::Dag& first,
                          const compute::Dag& second);
  // Where predictions were too close to call and not all times are known.
  [[nodiscard]] const std::vector<Alternative>& alternatives() const { return alternatives_; }
  [[nodiscard]] const Decisions& decisions() const { return decisions_; }
  // All tasks that took part in a choice, also those that lost.
  [[nodiscard]] const std::set<uint64_t>& weighed() const { return weighed_; }

 private:
  [[nodiscard]] Decision decide(const compute::Dag* const dags[3], const uint64_t keys[3]);
  [[nodiscard]] double predicted(const compute::Dag& dag, uint64_t key);
  void offer(const compute::Dag& dag, uint64_t key);

  const ChooseContext context_;
  std::map<uint64_t, double> predicted_;  // seconds by key
  std::vector<Alternative> alternatives_;
  Decisions decisions_;
  std::set<uint64_t> weighed_;
};

}  // namespace hone
