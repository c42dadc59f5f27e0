#include "hone/session/partial_buffers.h"

#include <algorithm>

namespace hone {
namespace {

// A limit that says of no element that it is computed.
OffsetLimit nothing() { return {.scale = 0, .beyond = 0, .unit = 0}; }

bool is_within(const OffsetLimit& limit, int64_t offset, int64_t size) {
  const int64_t row = offset / limit.stride;
  const int64_t place = limit.extent == 0 ? row : row % limit.extent;
  return place * limit.scale - limit.beyond < limit.unit * size;
}

}  // namespace

PartialBuffers partial_buffers(const LimitedTasks& split) {
  PartialBuffers partial;
  for (const graph::TaskCall& call : split.tasks.calls) {
    const KernelLimits& limits = split.limits[static_cast<size_t>(call.group)];
    for (const auto& [param, limit] : limits.outputs) {
      const graph::Argument& argument = call.arguments[param];
      if (limit.form < limits.decided_from || argument.kind != graph::Argument::Kind::kArena)
        continue;
      const DecidedSource& source =
          limits.decided[static_cast<size_t>(limit.form - limits.decided_from)];
      const graph::DecidedPlace place{call.sizes[source.buffer], source.element};
      const auto offsets = to_offsets(limit, call.dag.params[param].buffer->shape);
      partial[argument.index].push_back({offsets.value_or(nothing()), place});
    }
  }
  return partial;
}

Tensor computed_elements(const std::vector<PartialLimit>& limits, int64_t elements,
                         const std::function<int64_t(const graph::DecidedPlace&)>& number_at) {
  Tensor computed(DType::kBool, {elements});
  auto* const flags = static_cast<uint8_t*>(computed.data());
  std::fill_n(flags, elements, uint8_t{1});
  for (const PartialLimit& one : limits) {
    const int64_t size = number_at(one.size);
    for (int64_t i = 0; i < elements; ++i)
      flags[i] = flags[i] != 0 && is_within(one.limit, i, size) ? 1 : 0;
  }
  return computed;
}

}  // namespace hone
