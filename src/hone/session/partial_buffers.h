// session/partial_buffers.h - which elements of the tensors in memory a run does not compute, as
// data decide how many there are: for who compares tensors of a run.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "hone/session/limit_tasks.h"

namespace hone {

// Elements beyond a limit by this size are undefined.
struct PartialLimit {
  OffsetLimit limit;
  graph::DecidedPlace size;
};
// The limits of all calls that write a buffer, by its index in TaskList::buffers.
using PartialBuffers = std::map<int, std::vector<PartialLimit>>;

[[nodiscard]] PartialBuffers partial_buffers(const LimitedTasks& split);

// Returns for each element of a buffer whether it is within all limits, as booleans of a tensor
// [elements]. `number_at` returns the number that lies at a place now.
[[nodiscard]] Tensor computed_elements(
    const std::vector<PartialLimit>& limits, int64_t elements,
    const std::function<int64_t(const graph::DecidedPlace&)>& number_at);

}  // namespace hone
