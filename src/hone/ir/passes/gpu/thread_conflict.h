// ir/passes/gpu/thread_conflict.h - decides whether two accesses may touch one element from
// different threads.
//
// The question is whether a barrier is needed between two accesses, so "no" needs a proof and
// everything else is "yes". A proof compares the indices as linear forms: terms of variables that
// the block shares cancel, and what is left decides digit by digit which iterations meet.
#pragma once

#include "hone/ir/passes/gpu/thread_access.h"

namespace hone::ir {

// Returns whether two accesses to one buffer, one of them a store, may touch the same element from
// different threads of the block, while the variables that the block shares have the same values in
// both indices.
[[nodiscard]] bool may_conflict(const ThreadAccess& a, const ThreadAccess& b);

// More iterations than this, in one access, are not looked into one by one: may_conflict() and
// ir/gpu/check_barriers.h then both say that there may be a conflict, unless they are in different
// slots of a ring.
inline constexpr int64_t kMaxProvenIterations = 1 << 14;

}  // namespace hone::ir
