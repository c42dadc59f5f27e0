// session/size_times.h - times that were measured in runs of smaller sizes than the largest, by
// task, schedule, and the part of the task that such a run needs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hone/db/trial_store.h"
#include "hone/session/limit_tasks.h"

namespace hone {

// Returns the part of a task that a run needs in which the forms have these values, as
// trial::Record::part has it. The text says nothing of the model, so that equal parts of a task
// have one text:
//   2[0]<64           of param 2, the elements below 64 in dimension 0
//   2[1]%16<4         those of which the index modulo 16 is below 4
//   sum 1<64          of the reduction of stage 1, the terms below 64
//   whole             everything
// Several of these are joined by commas.
[[nodiscard]] std::string part_text(const compute::Dag& dag, const KernelLimits& limits,
                                    const std::vector<int64_t>& sizes);

// The seconds of a schedule by the text of a part; infinity if it failed.
using PartSeconds = std::map<std::string, double>;
// The seconds of all schedules of a task, by their texts.
using ScheduleTimes = std::map<std::string, PartSeconds>;

class SizeTimes {
 public:
  SizeTimes(std::string device, int threads) : device_(std::move(device)), threads_(threads) {}
  // Reads what a store has of a task on the device with so many threads, the first time it is asked
  // for it.
  [[nodiscard]] Status load(db::TrialStore& store, uint64_t task);
  // A later record replaces one of the same schedule and part.
  void add(const trial::Record& record);
  // Returns the times of a task; none are empty.
  [[nodiscard]] const ScheduleTimes& of(uint64_t task) const;

 private:
  const std::string device_;
  const int threads_;
  std::map<uint64_t, ScheduleTimes> times_;  // those that were loaded or added
  std::map<uint64_t, bool> is_loaded_;
};

// The factor by which a prediction was wrong: the ratio of both times at the sizes that were
// measured, and in between what follows from the neighbours.
class SizeCorrection {
 public:
  // `part` is as in SizeRange::at(), and rises from call to call.
  void add(double part, double predicted, double measured);
  [[nodiscard]] double factor(double part) const;  // 1 if nothing was measured
  [[nodiscard]] size_t count() const { return logs_.size(); }

 private:
  std::vector<std::pair<double, double>> logs_;  // the part, the logarithm of the ratio
};

}  // namespace hone
