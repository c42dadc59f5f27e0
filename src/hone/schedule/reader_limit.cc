#include "hone/schedule/reader_limit.h"

#include <algorithm>

namespace hone::schedule {
namespace {

// The read of a stage's result by another stage.
struct Read {
  int reader = -1;
  const compute::Access* access = nullptr;
};

// Returns the only read of the stage's only result, if there is one.
std::optional<Read> only_read(const State& state, int s) {
  const compute::Stage& stage = state.stages[s].info->stage;
  if (stage.outputs.size() != 1) return std::nullopt;
  Read found;
  for (size_t r = static_cast<size_t>(s) + 1; r < state.stages.size(); ++r) {
    for (const compute::Access& access : state.stages[r].info->reads) {
      if (access.buffer != stage.outputs[0].buffer) continue;
      if (found.access || !access.exact) return std::nullopt;
      found = {static_cast<int>(r), &access};
    }
  }
  return found.access ? std::optional(found) : std::nullopt;
}

// Returns the axis of a row that is one axis plus a constant; -1 for any other row.
int plain_axis(const compute::AffineRow& row) {
  int axis = -1;
  for (size_t a = 0; a < row.coef.size(); ++a) {
    if (row.coef[a] == 0) continue;
    if (axis >= 0 || row.coef[a] != 1) return -1;
    axis = static_cast<int>(a);
  }
  return axis;
}

}  // namespace

std::optional<ReaderLimit> reader_limit(const State& state, const Bounds& bounds, int s, int axis) {
  if (state.stages[s].compute.kind != AttachKind::kAt) return std::nullopt;
  const std::optional<Read> read = only_read(state, s);
  // Inside of other loops it may serve several runs of its reader.
  if (!read || state.stages[s].compute.stage != read->reader) return std::nullopt;
  const std::vector<compute::AffineRow>& writes = state.stages[s].info->writes[0];
  const auto written = std::find_if(writes.begin(), writes.end(),
                                    [&](const auto& row) { return plain_axis(row) == axis; });
  if (written == writes.end()) return std::nullopt;
  const compute::AffineRow& row =
      read->access->index[static_cast<size_t>(written - writes.begin())];
  const int of_reader = plain_axis(row);
  if (of_reader < 0) return std::nullopt;
  const AxisBounds& outer = bounds.stages[read->reader].axes[of_reader];
  if (!outer.guard_region) return std::nullopt;

  const AxisBounds& own = bounds.stages[s].axes[axis];
  const int64_t shift = written->constant - row.constant;  // from this stage's axis to the reader's
  const int64_t last = range(outer.min, bounds).second + outer.extent - 1 - shift;
  if (last >= state.stages[s].info->axes[axis].extent) return std::nullopt;
  ReaderLimit limit{own.min, outer.extent};
  limit.value.constant += shift;
  if (!limit.value.add(own.own, 1) || !limit.value.add(outer.min, -1)) return std::nullopt;
  return limit;
}

}  // namespace hone::schedule
