// search/task_scheduler.h - spends seconds over the tasks of a model where they shorten the model
// most. Pure logic: it is told what time was spent and what was found, and never looks at a clock.
//
// The rate at which a task is expected to gain comes from how fast it gained lately and from what
// it may still gain: its gap to the lower bound shrinks like 1 / (time spent), as the best of n
// random draws does, and faster if its last gain was long ago; what tasks like it reached of their
// bounds is likelier than the bound. A task at its bound gets nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace hone::search {

struct ScheduledTask {
  double multiplicity = 1;  // how often the task occurs in the model
  double expected = 0;      // seconds of one run, predicted or from an earlier run
  double bound = 0;         // seconds that no schedule can beat; 0 if unknown
  int family = -1;          // tasks with the same number are alike; -1: like no other
};

class TaskScheduler {
 public:
  explicit TaskScheduler(std::vector<ScheduledTask> tasks);

  // The task that the next batch goes to; -1 if none can gain any more. First every task that
  // matters gets one batch, the largest share first.
  [[nodiscard]] int next() const;
  // A batch was handed out and has not been reported: the scheduler counts on it.
  void start(int task);
  // `spent`: seconds that the batch took; `best`: seconds of the task's best schedule so far.
  void report(int task, double spent, double best);
  // Better knowledge of what no schedule can beat.
  void set_bound(int task, double bound);
  // The task's space is exhausted.
  void finish(int task);

  [[nodiscard]] double best(int task) const { return at(task).best; }
  [[nodiscard]] double spent(int task) const { return at(task).spent; }
  // Sum over tasks of multiplicity x best.
  [[nodiscard]] double total() const;
  // Expected seconds gained in a run of the model per second spent.
  [[nodiscard]] double gain(int task) const;
  // Seconds gained in a run of the model by so many seconds on that task alone: less and less the
  // longer, and never more than its gap.
  [[nodiscard]] double gain_in(int task, double seconds) const;
  [[nodiscard]] double bound(int task) const { return at(task).task.bound; }
  // So close to what no schedule can beat that searching is over.
  [[nodiscard]] bool at_limit(int task) const;

 private:
  struct Batch {
    double spent, best;  // best: after it
  };
  struct State {
    ScheduledTask task;
    double best = 0;
    double spent = 0;
    int batches = 0, running = 0;
    bool measured = false, finished = false;
    std::deque<Batch> recent;
    double before_recent = 0;  // best before the oldest of `recent`
    double gained_at = 0;      // `spent` when the best fell last
  };
  [[nodiscard]] const State& at(int task) const { return states_[static_cast<size_t>(task)]; }
  // The largest share of their bounds that tasks like this one reached; 0 if there are none.
  [[nodiscard]] double family_share(int task) const;
  [[nodiscard]] State& at(int task) { return states_[static_cast<size_t>(task)]; }

  std::vector<State> states_;
};

}  // namespace hone::search
