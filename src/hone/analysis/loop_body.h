// analysis/loop_body.h - the innermost loops of a nest, which code runs without a jump: unrolled
// loops, and the lanes of vectors as target/loop_plan.h plans them. The static measures
// (cpu_measure.h) count the vectors that a body loads, stores and keeps.
#pragma once

#include "hone/analysis/nest.h"
#include "hone/target/loop_plan.h"

namespace hone::analysis {

inline constexpr int kLineBytes = 64;

struct Body {
  target::LoopPlan plan;   // plan of the loop along the lanes
  bool is_vector = false;  // the last loop is vectorized
  bool fused = false;      // the lanes run along several loops that were fused
  size_t first = 0;        // loops from here on are unrolled or vectorized
  double vectors = 1;      // vector operations per operation of a point
  [[nodiscard]] bool is_square() const { return plan.kind == target::LoopKind::kSquare; }
};
[[nodiscard]] Body find_body(const Nest& nest, const target::Cpu& target);

// Returns the vectors along a vectorized loop, or the iterations of another one.
[[nodiscard]] double vector_count(const NestLoop& loop, int lanes);
// Returns whether the lanes run along two fused loops of which only the outer one moves the access:
// each part of the lanes reads one element. Code permutes a vector of memory for it where
// target::is_permuted() says so, and else gathers; the measures count a permutation in either case,
// as trained models have seen it.
[[nodiscard]] bool reads_by_parts(const Nest& nest, const NestAccess& access);
// Returns the loads (or stores) of one access in a body, as slots of the ports for loads.
[[nodiscard]] double access_slots(const Nest& nest, const NestAccess& access, const Body& body);
// Returns the cost of a vector load of an access, which is infinite if its lanes are far apart.
[[nodiscard]] double split_factor(const Nest& nest, const NestAccess& access, int lanes);
// Returns the vectors of an access that a body touches if it touches so many elements: those that
// several points of an unrolled window share are loaded once.
[[nodiscard]] double distinct_vectors(const Nest& nest, const NestAccess& access, const Body& body,
                                      double elements);
// Returns the terms of the sum, in a body, whose elements lie in the same vector of memory.
[[nodiscard]] double terms_of_vector(const Nest& nest, const NestAccess& access, const Body& body);
// Returns the part of a body's additions (or comparisons) that is left where points share the sums
// of their windows' columns (ir/passes/share_windows.h).
[[nodiscard]] double unshared_additions(const Nest& nest, const Body& body);
// Returns the vectors of an operand that wait in registers while the register tile uses them.
[[nodiscard]] double held_vectors(const Nest& nest, const NestAccess& access, const Body& body);

}  // namespace hone::analysis
