// measure/measure_roofline.h - finds the roofline of the machine that this runs on, by running in
// this process: every kernel of roofline_programs.h in turn, again and again, and of each the best
// rate that it reached: noise only makes things slower. On a virtual machine whose cores share a
// cache at some times and not at others, no round counts in which they were farther apart than
// they were seen (core_state.h): two cores that share no cache also share no way to memory, and
// the best rates of both states together are those of no machine.
#pragma once

#include <atomic>

#include "hone/measure/core_state.h"
#include "hone/target/target.h"
#include "hone/trial/roofline.h"

namespace hone::measure {

struct RooflineOptions {
  // How long to go on; three rounds are made in any case, and five times as long it takes at most
  // until three count. If fewer do then, all count.
  double seconds = 4;
  int64_t max_memory = 1 << 29;  // bytes of the largest data, beyond all caches if they fit
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C
};
// What a round found: a rate of each kernel, and the seconds of a fork and join of each number of
// threads in fork_join_threads().
struct RooflineRound {
  std::vector<trial::Rate> rates;
  std::vector<double> fork_join;
};
// The best of the rounds, of those on the nearest cores.
class BestOfRounds {
 public:
  // `before` and `after` are how the cores were when the round began and when it ended.
  void add(const RooflineRound& round, CoreChange before, CoreChange after);
  [[nodiscard]] int rounds() const { return rounds_; }  // that count
  // Of all rounds if fewer than `enough` count.
  [[nodiscard]] const RooflineRound& best(int enough) const;

 private:
  RooflineRound near_, any_;
  int rounds_ = 0;
};

[[nodiscard]] Result<trial::Roofline> measure_roofline(const target::Target& host,
                                                       const RooflineOptions& options = {});

// Bytes that each of so many threads goes through at once so that they live in a level: a half of a
// private cache; of a shared one several times what is closer, as far as it holds them all. Memory,
// the last one: `memory` bytes split evenly.
[[nodiscard]] std::vector<int64_t> working_sets(const target::Target& target, int threads,
                                                int64_t memory);

// The numbers of threads whose fork and join is measured: 2, 4, 8, ... and all cores.
[[nodiscard]] std::vector<int> fork_join_threads(int cores);

}  // namespace hone::measure
