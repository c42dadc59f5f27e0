// in_model.h - finds the fastest of a task's few best schedules inside the whole model, where other
// operands, weights and neighbours are in the caches than when it was measured alone (internal).
#pragma once

#include "hone/measure/timing.h"
#include "hone/session/model_tasks.h"

namespace hone {

// The factor by which a schedule may be slower alone than the best one and still be faster in the
// model, if its threads read other parts of the data, which may then be in other caches, or if it
// reads at most half the weights. For all others, the factor is smaller.
inline constexpr double kCloseOtherData = 1.5;

// A task of the model and the challengers of its schedule: those that are hardly slower alone.
struct Contest {
  size_t group = 0;  // index into TaskList::groups
  std::vector<search::MeasuredSchedule> challengers;
};
// Returns contests for the tasks that take a large enough share of the model's time, the most
// important ones first. `runners_up` has one list per group. There are at most `most` challengers
// in all; each task gets its first one before any task gets a second one.
[[nodiscard]] std::vector<Contest> contests_of(
    const ModelTasks& model, std::span<const schedule::Steps> schedules,
    std::span<const std::vector<search::MeasuredSchedule>> runners_up, int most);

// Returns the index of the challenger that is to replace the best schedule of a task; -1 if there
// is none. `duels` has the seconds in the model, one element per challenger. The probability that a
// schedule wins that is no faster is at most 5 % per contest.
[[nodiscard]] int winner(std::span<const trial::Duel> duels);

struct InModelOptions {
  double deadline = 0;  // on real_clock()
  uint64_t seed = 1;
  const std::atomic<bool>* interrupted = nullptr;
};
struct InModelResult {
  std::vector<int> winners;  // one per contest: the index of the challenger, or -1
  double model_seconds = 0;  // seconds of a run before
  double saved_seconds = 0;  // seconds that all winners together save in a run
  int rounds = 0;
};
// Runs the model repeatedly, until the deadline or until all contests are decided. A round is two
// runs. In one of them, a call of a contest's task uses the best schedule, in the other a
// challenger; which comes first is drawn for each call, so that a disturbance of one run favours
// neither. As a kernel may be faster at its neighbours' expense, the winners together must make
// whole runs faster, or none wins.
[[nodiscard]] Result<InModelResult> compare_in_model(const ModelTasks& model,
                                                     std::span<const schedule::Steps> schedules,
                                                     std::span<const Contest> contests,
                                                     const InModelOptions& options);

}  // namespace hone
