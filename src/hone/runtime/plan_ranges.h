// runtime/plan_ranges.h - tests whether parts of a plan lie in its block, for the files that check
// it.
#pragma once

#include <string.h>

#include "hone/runtime/plan.h"

namespace hone::runtime {

// The most bytes of memory: more than any machine has, and so few that sums do not overflow.
inline constexpr int64_t kMostBytes = int64_t{1} << 46;

// True if `count` elements of `size` bytes lie at `offset`, 8-byte aligned, inside the block.
inline bool table_fits(uint64_t total, uint64_t offset, uint64_t count, uint64_t size) {
  if (offset % 8 != 0 || offset > total) return false;
  return count <= (total - offset) / size;
}

inline bool string_fits(const PlanHeader& plan, uint64_t offset) {
  if (offset >= plan.total_bytes) return false;
  return memchr(plan_string(plan, offset), 0, plan.total_bytes - offset) != nullptr;
}

inline bool range_fits(int64_t total, int64_t offset, int64_t bytes) {
  return offset >= 0 && bytes >= 0 && offset <= total && bytes <= total - offset;
}

// True if the entries from `first` on are among the `all` of a table.
inline bool entries_fit(uint32_t first, uint32_t count, uint32_t all) {
  return first <= all && count <= all - first;
}

}  // namespace hone::runtime
