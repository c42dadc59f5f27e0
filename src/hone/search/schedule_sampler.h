// search/schedule_sampler.h - chooses the schedules of a task that a data set measures: not the way
// to the best one, but a sample of the space in which good ones are well covered. Of each batch
// kRandomShare are drawn at random over all sketches, kMutantShare are small changes of the fastest
// measured so far, and the rest are the best of many such changes and random points by the cost
// model, corrected by what it got wrong of their parents. The first schedules are the sketches'
// default points.
#pragma once

#include <unordered_set>

#include "hone/search/searcher.h"

namespace hone::search {

inline constexpr double kRandomShare = 0.4, kMutantShare = 0.3;
// A random point that is predicted to take so many times the default's seconds is drawn again: it
// says little and costs as much as hundreds of others.
inline constexpr double kHopeless = 30;
// All points of a space with fewer of them are looked at where draws find hardly any that are new.
inline constexpr double kSmallSpace = 65536;

// The fastest schedules of a task on a device, fastest first.
class FastestPoints {
 public:
  struct Entry {
    space::Point point;
    double seconds;
  };
  void add(const space::Point& point, double seconds);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Returns all legal points, as canonical ones, each once; for spaces of few points.
[[nodiscard]] std::vector<space::Point> all_points(const space::Space& space);

// Returns at most n points whose schedules (schedule::hash of their steps) are not among `taken`,
// and adds those to it. It returns fewer if a small space has no more that make sense on the task's
// threads, or another one hardly any more, and none if the space is exhausted. The choice is
// deterministic.
[[nodiscard]] std::vector<space::Point> sample_schedules(const SearchTask& task,
                                                         const FastestPoints& fastest,
                                                         std::unordered_set<uint64_t>& taken, int n,
                                                         Rng& rng);

}  // namespace hone::search
