// progress.h - how far a tuning run has come, for whoever watches it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct TaskProgress {
  std::string name;            // name of the task's first node
  double multiplicity = 1;     // how often it occurs in the model
  double untuned_seconds = 0;  // 0: not measured yet
  double best_seconds = 0;
  int trials = 0;
  double bound_seconds = 0;  // what no schedule is expected to beat
  double share = 0;          // share of the model's time
  double expected_gain = 0;  // share of the model's time that kGainSeconds more on it may save
  bool at_limit = false;     // it gets no more time
  uint64_t key = 0;          // TaskSummary::key
  std::string kernel_class;  // such as "conv2d+bias+relu"
};
inline constexpr double kGainSeconds = 10;

struct TuneProgress {
  double elapsed = 0, budget = 0;  // seconds
  double left = 0;  // seconds until the time or the trials are spent, as it looks now
  int trials = 0;
  double trials_per_second = 0;
  int task = -1;                // task of the last batch
  std::string_view stage = {};  // the work before or after the search, in words; empty: it goes on
  std::vector<TaskProgress> tasks;
};

}  // namespace hone
