// target/loop_plan.h - how code for a CPU runs a loop on the lanes of its vectors, decided once.
//
// The facts are numbers that the loops of a State and the statements of a loop program both give,
// so that backend/cpu emits what a plan says and analysis counts it. The analysis knows the type of
// the result alone and neither scans nor filters; it leaves these facts as they are by default. The
// decision lies in this folder because both may include it, and neither may include the other.
#pragma once

#include <cstdint>
#include <optional>

#include "hone/target/cpu.h"

namespace hone::target {

enum class LoopKind {
  kSerial,  // one iteration after the other
  kLanes,   // the iterations of a vector side by side
  kSquare,  // as many rows as lanes, which are transposed in registers and stored along the rows
  kScan,    // lanes pass on their sums to the lanes after them
  kFilter,  // lanes that pass a test are packed
};

struct LoopFacts {
  bool vectorizable = true;    // iterations may run side by side
  bool scans = false;          // the loop is a scan (ir/scan_loop.h) of elements at known places
  bool filters = false;        // the body stores the elements that pass a test, side by side
  bool fixed_indices = false;  // register buffers are indexed by the lane, so vectors are unrolled
  bool reduces = false;        // the lanes keep partial results until the loop ends
  int element_bytes = 4;       // size of the widest element that the lanes compute with
  std::optional<int64_t> extent;  // iterations, unless they are known at run time only
  int64_t divisor = 1;            // then: a number that divides them
  // An unrolled loop around this one, if the only store in both takes the place of its own: its
  // iterations, and how far apart it and the lanes move the store, in elements.
  int64_t rows = 1, row_stride = 0, lane_stride = 0;
};

struct LoopPlan {
  LoopKind kind = LoopKind::kSerial;
  int lanes = 1;       // lanes of a whole vector
  int width = 1;       // lanes of the widest vector that the loop uses: fewer if it is shorter
  int64_t chains = 1;  // partial results of a reduction that are computed side by side
  // A loop at run time takes so many whole vectors in each iteration; 0 if all are unrolled.
  int64_t step = 0;
};

[[nodiscard]] LoopPlan plan_loop(const LoopFacts& facts, const Cpu& target);
// Returns the rows and columns of squares of such elements that are transposed in registers; 0 if
// there are none.
[[nodiscard]] int64_t square_side(int element_bytes, const Cpu& target);
// Returns the lanes of a vector that holds `active` elements: a power of two.
[[nodiscard]] int vector_width(int64_t active, int lanes);
// Returns whether one instruction permutes the 32-bit lanes of a vector by numbers in another: of
// the targets that are described, those with vectors of 32 bytes or more (vpermd of AVX2).
[[nodiscard]] bool permutes_lanes(const Cpu& target);

// A read whose lanes are at several places, all of which may be read.
struct LaneRead {
  int element_bytes = 4;
  int lanes = 1;                // lanes of the vector that is made
  bool on_stack = false;        // its memory may end behind its last element
  int64_t elements = 0;         // elements of the buffer
  int64_t first = 0, last = 0;  // range of the places, from a multiple of a whole vector on
};
// Returns whether the read is one load of a vector, which other reads share, and a permutation.
[[nodiscard]] bool is_permuted(const LaneRead& read, const Cpu& target);

}  // namespace hone::target
