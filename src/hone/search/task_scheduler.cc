#include "hone/search/task_scheduler.h"

#include <algorithm>

#include "hone/base/assert.h"

namespace hone::search {
namespace {

constexpr double kWarmUpShare = 0.002;  // tasks below this share of the model are not warmed up
constexpr size_t kRecent = 3;           // batches that "lately" means
constexpr double kPotential =
    0.25;  // part of the gap that searching as long again is hoped to close
constexpr double kPastWeight = 0.5;
constexpr double kMinimumSpent = 0.05;  // seconds: keeps the rates of tasks barely begun finite

}  // namespace

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks) {
  for (const ScheduledTask& task : tasks) {
    State state;
    state.task = task;
    state.best = task.expected;
    states_.push_back(std::move(state));
  }
}

double TaskScheduler::total() const {
  double sum = 0;
  for (const State& state : states_) sum += state.task.multiplicity * state.best;
  return sum;
}

double TaskScheduler::gain(int task) const {
  const State& state = at(task);
  if (state.finished) return 0;
  double recent_spent = kMinimumSpent;
  for (const Batch& batch : state.recent) recent_spent += batch.spent;
  const double past =
      state.recent.empty() || !state.measured
          ? 0
          : std::max(0.0, state.before_recent - state.recent.back().best) / recent_spent;
  const double gap = std::max(0.0, state.best - state.task.bound);
  const double typical = state.batches > 0 ? state.spent / state.batches : kMinimumSpent;
  const double spent = std::max(kMinimumSpent, state.spent + state.running * typical);
  // Half of what was gained lately is expected again; the rest hangs on the gap that is left.
  const double rate = kPastWeight * past / (1 + state.running) +
                      kPotential * std::max(gap, 0.02 * state.best) / spent;
  return state.task.multiplicity * rate;
}

int TaskScheduler::next() const {
  const double whole = total();
  int warm = -1, best = -1;
  double warm_share = 0, best_gain = 0;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    const State& state = at(i);
    if (state.finished) continue;
    const double share = state.task.multiplicity * state.best;
    if (state.batches + state.running == 0 && share > kWarmUpShare * whole &&
        (warm < 0 || share > warm_share)) {
      warm = i, warm_share = share;
    }
    if (const double rate = gain(i); best < 0 || rate > best_gain) best = i, best_gain = rate;
  }
  return warm >= 0 ? warm : best;
}

void TaskScheduler::start(int task) { ++at(task).running; }

void TaskScheduler::report(int task, double spent, double best) {
  State& state = at(task);
  HONE_ASSERT(spent >= 0, "time runs forward");
  state.running = std::max(0, state.running - 1);
  state.spent += spent;
  ++state.batches;
  // The first measurement replaces a guess: no gain.
  const double before = state.measured ? state.best : best;
  state.recent.push_back({spent, best});
  if (state.recent.size() == 1) state.before_recent = before;
  if (state.recent.size() > kRecent) {
    state.before_recent = state.recent.front().best;
    state.recent.pop_front();
  }
  state.best = best;
  state.measured = true;
}

void TaskScheduler::set_bound(int task, double bound) { at(task).task.bound = bound; }

void TaskScheduler::finish(int task) { at(task).finished = true; }

}  // namespace hone::search
