// in_model.h - which of a task's few best schedules is the fastest where it is used: inside the
// whole model, where other operands, weights and neighbours are in the caches than when it was
// measured alone (internal to the facade).
#pragma once

#include "hone/measure/timing.h"
#include "hone/session/model_tasks.h"

namespace hone {

// A schedule that takes longer alone, times the best, is no faster in the model: one whose threads
// read other parts, which may lie in other caches then, or that has half the weights.
inline constexpr double kCloseOtherData = 1.5;

// A task of the model and the schedules that are hardly slower than the one it has.
struct Contest {
  size_t group = 0;  // of TaskList::groups
  std::vector<search::MeasuredSchedule> challengers;
};
// The tasks that matter to the model's time, the most important ones first; `runners_up` per group.
// At most `most` challengers, each task's first one before any second one.
[[nodiscard]] std::vector<Contest> contests_of(
    const ModelTasks& model, std::span<const schedule::Steps> schedules,
    std::span<const std::vector<search::MeasuredSchedule>> runners_up, int most);

// Of a task's challengers the one that is to take the place of the best so far; -1: none. `duels`:
// per challenger, seconds in the model. Chance lets one win that is no faster in at most 5 of 100
// contests.
[[nodiscard]] int winner(std::span<const trial::Duel> duels);

struct InModelOptions {
  double deadline = 0;  // on real_clock()
  uint64_t seed = 1;
  const std::atomic<bool>* interrupted = nullptr;
};
struct InModelResult {
  std::vector<int> winners;  // per contest: the challenger, or -1
  double model_seconds = 0;  // of a run before
  double saved_seconds = 0;  // of it, by all winners together
  int rounds = 0;
};
// Runs the model again and again, until the deadline or until all is decided. In a round it runs
// twice: each call of a contest's task once with the best and once with a challenger, in an order
// drawn for this call. So whatever else happens in one of the two runs favours neither. A kernel
// may be faster at its neighbours' cost: all winners together must make whole runs faster, or none
// wins.
[[nodiscard]] Result<InModelResult> compare_in_model(const ModelTasks& model,
                                                     std::span<const schedule::Steps> schedules,
                                                     std::span<const Contest> contests,
                                                     const InModelOptions& options);

}  // namespace hone
