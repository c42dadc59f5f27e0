#include "hone/target/loop_plan.h"

#include <algorithm>
#include <bit>

namespace hone::target {
namespace {

constexpr int64_t kMostUnrolled = 8;  // longer vectorized loops become loops over vectors
constexpr int64_t kChains = 4;  // independent partial results hide the latency of the operator
// Squares are transposed by words, in blocks that shuffles within 128 bits can reach.
constexpr int64_t kWordBytes = 4, kLeastSquare = 4, kMostSquare = 16;
constexpr int kPermutedBytes = 32;  // the shortest vectors whose lanes one instruction permutes

bool is_square(const LoopFacts& facts, const Cpu& target) {
  const int64_t side = square_side(facts.element_bytes, target);
  return side > 0 && facts.rows == side && facts.extent == side && facts.row_stride == 1 &&
         facts.lane_stride != 0 && facts.lane_stride != 1;
}

}  // namespace

bool permutes_lanes(const Cpu& target) { return target.vector_bytes >= kPermutedBytes; }

int vector_width(int64_t active, int lanes) {
  const auto ceil = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(active)));
  return static_cast<int>(std::min<int64_t>(lanes, ceil));
}

int64_t square_side(int element_bytes, const Cpu& target) {
  const int64_t side = target.vector_bytes / kWordBytes;
  return element_bytes == kWordBytes && side >= kLeastSquare && side <= kMostSquare ? side : 0;
}

LoopPlan plan_loop(const LoopFacts& facts, const Cpu& target) {
  LoopPlan plan;
  plan.lanes = std::max(1, target.lanes(facts.element_bytes));
  plan.width = plan.lanes;
  if (!facts.vectorizable || (facts.filters && !permutes_lanes(target))) return plan;
  const LoopKind kind = is_square(facts, target) ? LoopKind::kSquare
                        : facts.scans            ? LoopKind::kScan
                        : facts.filters          ? LoopKind::kFilter
                                                 : LoopKind::kLanes;
  if (!facts.extent) {
    if (facts.scans || facts.fixed_indices || facts.divisor % plan.lanes != 0) return plan;
    plan.chains = facts.reduces ? kChains : 1;
    while (facts.divisor % (plan.chains * plan.lanes) != 0) plan.chains /= 2;
    plan.step = plan.chains;
  } else {
    const int64_t whole = *facts.extent / plan.lanes;
    plan.width = vector_width(std::max<int64_t>(1, *facts.extent), plan.lanes);
    plan.chains = std::clamp<int64_t>(whole, 1, kChains);
    if (whole > kMostUnrolled && !facts.fixed_indices) plan.step = facts.reduces ? plan.chains : 1;
  }
  plan.kind = kind;
  return plan;
}

bool is_permuted(const LaneRead& read, const Cpu& target) {
  const int64_t vector = target.vector_bytes / kWordBytes;
  return permutes_lanes(target) && read.element_bytes == kWordBytes && !read.on_stack &&
         read.lanes <= vector && read.elements % vector == 0 && read.first >= 0 &&
         read.last < vector;
}

}  // namespace hone::target
