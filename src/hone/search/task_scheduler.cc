#include "hone/task_scheduler.h"

#include <algorithm>
#include <cmath>

#include "hone/base/assert.h"

namespace hone {
namespace {

constexpr double kWarmUpShare = 0.002;  // tasks below this share of the model are not warmed up
constexpr size_t kRecent = 3;           // batches that "lately" means
constexpr double kPotential =
    0.25;                        // part of the gap that searching as long again is hoped to close
constexpr double kLikely = 0.5;  // the same of the gap to what similar tasks reached
constexpr double kPastWeight = 0.5;
constexpr double kAtLimit = 0.95;       // of the bound: nothing more can be expected
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

bool TaskScheduler::at_limit(int task) const {
  const State& state = at(task);
  return state.measured && state.task.bound >= kAtLimit * state.best;
}

double TaskScheduler::family_share(int task) const {
  const int family = at(task).task.family;
  double share = 0;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    const State& other = at(i);
    if (i == task || family < 0 || other.task.family != family || !other.measured) continue;
    if (other.best > 0) share = std::max(share, other.task.bound / other.best);
  }
  return std::min(share, 1.0);
}

double TaskScheduler::gain(int task) const {
  const State& state = at(task);
  if (state.finished || at_limit(task)) return 0;
  double recent_spent = kMinimumSpent;
  for (const Batch& batch : state.recent) recent_spent += batch.spent;
  const double past =
      state.recent.empty() || !state.measured
          ? 0
          : std::max(0.0, state.before_recent - state.recent.back().best) / recent_spent;
  const double typical = state.batches > 0 ? state.spent / state.batches : kMinimumSpent;
  const double spent = std::max(kMinimumSpent, state.spent + state.running * typical);
  double hope = kPotential * std::max(0.0, state.best - state.task.bound);
  if (const double share = family_share(task); share > 0)
    hope = std::max(hope, kLikely * (state.best - state.task.bound / share));
  // A search that has gained nothing for as long as it took to come here gains half as often.
  const double pause = 2 * typical;
  hope *= (state.gained_at + pause) / std::max(state.spent + pause, kMinimumSpent);
  // Half of what was gained lately is expected again; the rest hangs on the gap that is left.
  const double rate = kPastWeight * past / (1 + state.running) + hope / spent;
  return state.task.multiplicity * rate;
}

double TaskScheduler::gain_in(int task, double seconds) const {
  const State& state = at(task);
  const double gap = state.task.multiplicity * (state.best - state.task.bound);
  if (!(gap > 0)) return 0;
  // The rate falls as the gap shrinks, which goes like a power of the time spent.
  const double spent = std::max(kMinimumSpent, state.spent);
  const double power = gain(task) * spent / gap;
  return gap * (1 - std::pow(spent / (spent + seconds), power));
}

int TaskScheduler::next() const {
  const double whole = total();
  int warm = -1, best = -1;
  double warm_share = 0, best_gain = 0;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    const State& state = at(i);
    if (state.finished || at_limit(i)) continue;
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

void TaskScheduler::withdraw(int task) { at(task).running = std::max(0, at(task).running - 1); }

void TaskScheduler::report(int task, double spent, double best) {
  State& state = at(task);
  HONE_ASSERT(spent >= 0, "time runs forward");
  state.running = std::max(0, state.running - 1);
  state.spent += spent;
  ++state.batches;
  // The first measurement replaces a guess: no gain.
  const double before = state.measured ? state.best : best;
  if (best < before || !state.measured) state.gained_at = state.spent;
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

}  // namespace hone
