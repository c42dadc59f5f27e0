// choose_tasks.h - decides whether two tasks of a model are joined to one where the partition
// offers it (a depthwise convolution and the pointwise one after it). Measured times decide if they
// are known, else predicted ones.
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

// Returns the best measured seconds of a task, given its key; nothing if it was never measured.
using Measured = std::function<std::optional<double>(uint64_t task)>;

// A decision about joining two tasks: `joins` if the joined task replaces them, `doubtful` if the
// predicted times are so close that the choice is to be measured. Decisions are found by the joined
// task's key.
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
  Decisions decided = {};      // earlier decisions; those that were not doubtful are kept
  ThreadPool* pool = nullptr;  // computes predictions; may be null
};

// A task that is not in the partition although it may be part of the faster choice. A tuner
// measures such tasks, too.
struct Alternative {
  TaskPtr task;
  int multiplicity = 0;  // how often the task would occur in the model
};

class TaskChooser {
 public:
  explicit TaskChooser(const ChooseContext& context) : context_(context) {}

  [[nodiscard]] bool join(const compute::Dag& joined, const compute::Dag& first,
                          const compute::Dag& second);
  // Returns the tasks of the choices that were not made although predictions were too close to call
  // and not all times are known.
  [[nodiscard]] const std::vector<Alternative>& alternatives() const { return alternatives_; }
  [[nodiscard]] const Decisions& decisions() const { return decisions_; }
  // Returns the keys of all tasks that took part in a choice, including those that were not chosen.
  [[nodiscard]] const std::set<uint64_t>& weighed() const { return weighed_; }

 private:
  [[nodiscard]] Decision decide(const compute::Dag* const dags[3], const uint64_t keys[3]);
  [[nodiscard]] double predicted(const compute::Dag& dag, uint64_t key);
  void offer(const compute::Dag& dag, uint64_t key);

  const ChooseContext context_;
  std::map<uint64_t, double> predicted_;  // predicted seconds by key
  std::vector<Alternative> alternatives_;
  Decisions decisions_;
  std::set<uint64_t> weighed_;
};

}  // namespace hone
