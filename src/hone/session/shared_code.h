// session/shared_code.h - groups of calls whose code is the same but for where their results begin,
// as those of the steps of a recurrent net, each of which writes another part of the result. They
// are compiled once.
#pragma once

#include <span>

#include "hone/compute/at_origin.h"
#include "hone/session/assemble.h"

namespace hone {

// The code that a group shares with others.
struct SharedCode {
  size_t leader = 0;             // the group for which it is compiled
  compute::Dag dag;              // the task that it computes, the same for all of them
  KernelLimits limits;           // those that it is compiled with
  std::vector<int64_t> offsets;  // per param: the bytes by which the argument of a call is moved
};

// Returns what each group shares; nothing for a group that has code of its own.
[[nodiscard]] std::vector<std::optional<SharedCode>> find_shared_code(
    const graph::TaskList& tasks, std::span<const schedule::Steps> schedules,
    const AssemblyLimits& limits);

}  // namespace hone
