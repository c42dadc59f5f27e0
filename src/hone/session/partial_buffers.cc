#include "hone/session/partial_buffers.h"

namespace hone {
namespace {

bool is_within(const OffsetLimit& limit, int64_t offset, int64_t size) {
  const int64_t row = offset / limit.stride;
  const int64_t place = limit.extent == 0 ? row : row % limit.extent;
  return place * limit.scale - limit.beyond < limit.unit * size;
}

}  // namespace

PartialBuffers partial_buffers(const LimitedTasks& split) {
  PartialBuffers partial;
  for (int c = 0; c < std::ssize(split.tasks.calls); ++c) {
    const graph::TaskCall& call = split.tasks.calls[static_cast<size_t>(c)];
    const KernelLimits& limits = split.limits[static_cast<size_t>(call.group)];
    for (const auto& [param, limit] : limits.outputs) {
      const graph::Argument& argument = call.arguments[param];
      if (limit.form < limits.decided_from || argument.kind != graph::Argument::Kind::kArena)
        continue;
      const DecidedSource& source =
          limits.decided[static_cast<size_t>(limit.form - limits.decided_from)];
      partial[c].push_back({argument.index,
                            to_offsets(limit, call.dag.params[param].buffer->shape),
                            {call.sizes[source.buffer], source.element}});
    }
  }
  return partial;
}

void leave_out_beyond(const OffsetLimit& limit, int64_t size, Tensor& computed) {
  auto* const flags = static_cast<uint8_t*>(computed.data());
  for (int64_t i = 0; i < computed.size(); ++i)
    if (!is_within(limit, i, size)) flags[i] = 0;
}

}  // namespace hone
