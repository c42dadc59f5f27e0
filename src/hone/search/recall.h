// search/recall.h - lets the searchers of a run share what its tasks, and those of earlier runs,
// showed about the cost model's errors: predictions are corrected by it before anything of a task
// is measured.
#pragma once

#include <unordered_map>

#include "hone/search/effect_memory.h"

namespace hone::search {

class Recall {
 public:
  // `share` is the share of an expected error by which predictions are corrected.
  explicit Recall(double share) : share_(share) {}
  // Returns the number to add to the logarithm of a predicted time.
  [[nodiscard]] double log_factor(const SearchTask& task, const space::Point& point) const {
    return share_ * memory_.expected_error(task, point);
  }
  // Returns a number that changes whenever log_factor() may.
  [[nodiscard]] uint64_t revision() const { return revision_; }
  // Learns from the seconds that a task measured in this run; nothing is learned from a failure,
  // which is infinity.
  void observe(const SearchTask& task, std::span<const space::Point> points,
               std::span<const double> seconds);

  [[nodiscard]] std::string save() const { return memory_.to_text(); }
  [[nodiscard]] Status load(std::string_view state);

 private:
  // The errors of a task so far: all its schedules may be slower than predicted, which says nothing
  // about which are faster than others.
  struct Level {
    double sum = 0;
    int count = 0;
  };

  double share_;
  EffectMemory memory_;
  std::unordered_map<uint64_t, Level> levels_;  // by task, of this run
  uint64_t revision_ = 0;
};

}  // namespace hone::search
