// tools/hone/kernel_history.h - the measurements of a kernel in the order of time, as a report
// shows them: when the best time fell, and which decisions of its schedules mattered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hone/database.h"

namespace hone::tool {

// A measurement.
struct HistoryPoint {
  double at = 0;       // seconds of tuning before it
  int64_t number = 0;  // of all measurements of the run, from 1
  double seconds = 0;  // of the kernel; 0 if it failed
};

// How much a decision, such as the length of a tile, had to do with the times that were measured.
struct DecisionEffect {
  std::string name;  // "relu:lanes": a stage and a role; "sketch": which structure was used
  int values = 0;    // number of different ones that were measured
  std::string best;  // value of the fastest schedule
  // The share of the variance of the logarithm of the times that its value explains (epsilon
  // squared of a one-way analysis of variance, which is about 0 for values that do not matter).
  double explained = 0;
  // The least time with another value / the least time; 0 if there is no other.
  double other = 0;
};

class KernelHistory {
 public:
  void add(const TrialInfo& trial, double at, int64_t number);

  [[nodiscard]] int64_t trials() const { return static_cast<int64_t>(points_.size()); }
  [[nodiscard]] int64_t failed() const { return failed_; }
  // The fastest verified schedule; 0 and "" if there is none.
  [[nodiscard]] double best_seconds() const {
    return improvements_.empty() ? 0 : improvements_.back().seconds;
  }
  [[nodiscard]] const std::string& best_steps() const { return best_steps_; }
  [[nodiscard]] const std::string& best_algorithm() const { return best_algorithm_; }
  [[nodiscard]] const std::string& kernel_class() const { return kernel_class_; }
  // The verified measurements that were faster than all before them.
  [[nodiscard]] const std::vector<HistoryPoint>& improvements() const { return improvements_; }
  // At most so many points, in order: all improvements if they fit, and others evenly spread.
  [[nodiscard]] std::vector<HistoryPoint> points(size_t most) const;
  // Those with more than one value that was measured; what explains most comes first.
  [[nodiscard]] std::vector<DecisionEffect> decisions() const;

 private:
  // Sums over the logarithms of times.
  struct Sums {
    double count = 0, sum = 0, squares = 0;
    double best = 0;  // seconds
    void add(double seconds);
  };
  void add_decisions(std::string_view text, double seconds);

  std::string kernel_class_, best_steps_, best_algorithm_;
  int64_t failed_ = 0;
  std::vector<HistoryPoint> points_, improvements_;
  std::map<std::string, std::map<std::string, Sums, std::less<>>, std::less<>>
      decisions_;  // by name and value
};

// The time of a model in the course of its tuning: the sum of its kernels' best times so far, each
// so often as it occurs. A kernel counts with its first time before it was measured.
struct CurveKernel {
  const KernelHistory* history = nullptr;
  double times = 1;
};
[[nodiscard]] std::vector<HistoryPoint> model_curve(const std::vector<CurveKernel>& kernels);

// At most `most` of the points: the first, the last, and others evenly spread.
[[nodiscard]] std::vector<HistoryPoint> thinned(std::vector<HistoryPoint> points, size_t most);

}  // namespace hone::tool
