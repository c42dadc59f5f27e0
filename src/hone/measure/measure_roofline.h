// measure/measure_roofline.h - finds the roofline of the machine that this runs on, by running in
// this process: every kernel of roofline_programs.h in turn, again and again, and of each the best
// rate that it reached: noise only makes things slower.
#pragma once

#include <atomic>

#include "hone/measure/roofline.h"
#include "hone/target/target.h"

namespace hone::measure {

struct RooflineOptions {
  double seconds = 4;            // how long to go on; three rounds are made in any case
  int64_t max_memory = 1 << 29;  // bytes of the largest data, beyond all caches if they fit
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C
};
[[nodiscard]] Result<Roofline> measure_roofline(const target::Target& host,
                                                const RooflineOptions& options = {});

// Bytes that each of so many threads goes through at once so that they live in a level: a half of a
// private cache; of a shared one several times what is closer, as far as it holds them all. Memory,
// the last one: `memory` bytes split evenly.
[[nodiscard]] std::vector<int64_t> working_sets(const target::Target& target, int threads,
                                                int64_t memory);

// The numbers of threads whose fork and join is measured: 2, 4, 8, ... and all cores.
[[nodiscard]] std::vector<int> fork_join_threads(int cores);

}  // namespace hone::measure
