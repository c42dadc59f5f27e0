// measure/measure_roofline.h - measures the roofline of this machine in this process. Every kernel
// of roofline_programs.h runs in turn, again and again, and the best rate of each counts, as noise
// only makes things slower. On a virtual machine whose cores share a cache only sometimes, rounds
// in which they were farther apart than in others do not count (core_state.h): two cores that share
// no cache also share no path to memory, and the best rates of both states together belong to no
// machine.
#pragma once

#include <atomic>

#include "hone/measure/core_state.h"
#include "hone/target/target.h"
#include "hone/trial/roofline.h"

namespace hone::measure {

struct RooflineOptions {
  // Time for measuring. Three rounds are made in any case, and up to five times this time is used
  // until three rounds count. If fewer count then, all rounds do.
  double seconds = 4;
  int64_t max_memory = 1 << 29;  // bytes of the largest data, which is beyond all caches if it fits
  const std::atomic<bool>* interrupted = nullptr;  // flag that Ctrl-C sets
};
// The results of one round: a rate of each kernel, and the seconds of a fork and join with each
// number of threads in fork_join_threads().
struct RooflineRound {
  std::vector<trial::Rate> rates;
  std::vector<double> fork_join;
};
// The best of the rounds with the nearest cores.
class BestOfRounds {
 public:
  // Adds a round. `before` and `after` tell the state of the cores when it began and ended.
  void add(const RooflineRound& round, CoreChange before, CoreChange after);
  [[nodiscard]] int rounds() const { return rounds_; }  // number of rounds that count
  // Returns the best rates; those of all rounds if fewer than `enough` count.
  [[nodiscard]] const RooflineRound& best(int enough) const;

 private:
  RooflineRound near_, any_;
  int rounds_ = 0;
};

[[nodiscard]] Result<trial::Roofline> measure_roofline(const target::Target& host,
                                                       const RooflineOptions& options = {});

// Returns, per level, the bytes that each of `threads` threads reads in turn so that they stay in
// that level: half of a private cache; in a shared one several times the closer caches, as far as
// it holds them all. The last level is memory: `memory` bytes split evenly.
[[nodiscard]] std::vector<int64_t> working_sets(const target::Cpu& target, int threads,
                                                int64_t memory);

// Returns the numbers of threads whose fork and join is measured: 2, 4, 8, ... and all cores.
[[nodiscard]] std::vector<int> fork_join_threads(int cores);

}  // namespace hone::measure
