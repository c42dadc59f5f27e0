// task_scheduler.h - spends seconds over the tasks of a model where they shorten the model most:
// what tune() asks, for who divides the work of many machines. Pure logic: it is told what time was
// spent and what was found, and never looks at a clock.
//
//   hone::TaskScheduler scheduler({{.multiplicity = 2, .expected = 1e-3}, {.expected = 4e-3}});
//   const int task = scheduler.next();
//   scheduler.start(task);
//   scheduler.report(task, seconds_spent, seconds_of_its_best_schedule);
//
// The rate at which a task is expected to gain comes from how fast it gained lately and from what
// it may still gain: its gap to the lower bound shrinks like 1 / (time spent), as the best of n
// random draws does, and faster if its last gain was long ago; what tasks like it reached of their
// bounds is likelier than the bound. A task at its bound gets nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "hone/export.h"

namespace hone {

struct ScheduledTask {
  double multiplicity = 1;  // how often the task occurs in the model
  double expected = 0;      // seconds of one run, predicted or from an earlier run
  double bound = 0;         // seconds that no schedule can beat; 0 if unknown
  int family = -1;          // tasks with the same number are alike; -1: like no other
};

// Tasks are named by their index. Several batches of one task may be under way at the same time.
class HONE_API TaskScheduler {
 public:
  explicit TaskScheduler(std::vector<ScheduledTask> tasks);

  // Returns the task that the next batch goes to; -1 if none can gain any more. First every task
  // that matters gets one batch, the largest share first.
  [[nodiscard]] int next() const;
  // Tells the scheduler that a batch was handed out, which report() will follow.
  void start(int task);
  // Reports a batch. `spent` is the seconds that it took, and `best` the seconds of the task's best
  // schedule so far.
  void report(int task, double spent, double best);
  // Takes back a start(): the batch was lost, and no report() follows.
  void withdraw(int task);
  // Sets the seconds that no schedule can beat, when they are known better.
  void set_bound(int task, double bound);
  // Tells the scheduler that the task has nothing more to hand out.
  void finish(int task);

  [[nodiscard]] int size() const { return static_cast<int>(states_.size()); }
  [[nodiscard]] double best(int task) const { return at(task).best; }
  [[nodiscard]] double spent(int task) const { return at(task).spent; }
  // Returns the sum over tasks of multiplicity x best.
  [[nodiscard]] double total() const;
  // Returns the expected seconds gained in a run of the model per second spent.
  [[nodiscard]] double gain(int task) const;
  // Returns the seconds gained in a run of the model by so many seconds on that task alone. The
  // gain per second falls with time, and the gain is never more than the task's gap.
  [[nodiscard]] double gain_in(int task, double seconds) const;
  [[nodiscard]] double bound(int task) const { return at(task).task.bound; }
  // Returns whether the task is so close to what no schedule can beat that its search is over.
  [[nodiscard]] bool at_limit(int task) const;

 private:
  struct Batch {
    double spent, best;  // seconds that it took; best seconds after it
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
  // Returns the largest share of their bounds that tasks like this one reached; 0 if there are
  // none.
  [[nodiscard]] double family_share(int task) const;
  [[nodiscard]] State& at(int task) { return states_[static_cast<size_t>(task)]; }

  std::vector<State> states_;
};

}  // namespace hone
