// session/partial_buffers.h - which elements of the tensors in memory a run does not compute, as
// data decide how many there are: for who compares tensors of a run.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "hone/session/limit_tasks.h"

namespace hone {

// Elements of a buffer (an index of TaskList::buffers) beyond a limit by this size are undefined.
// Without a limit it is not known which ones are.
struct PartialLimit {
  int buffer = -1;
  std::optional<OffsetLimit> limit;
  graph::DecidedPlace size;
};
// The limits of the results of each call that has any, by its index.
using PartialBuffers = std::map<int, std::vector<PartialLimit>>;

[[nodiscard]] PartialBuffers partial_buffers(const LimitedTasks& split);

// Sets the elements to false that lie beyond a limit by this size. `computed` has a boolean for
// each element of the buffer.
void leave_out_beyond(const OffsetLimit& limit, int64_t size, Tensor& computed);

}  // namespace hone
