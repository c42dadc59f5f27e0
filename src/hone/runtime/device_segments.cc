#include "hone/runtime/device_segments.h"

#include <stdlib.h>

namespace hone::runtime {
namespace {

bool contains(const PlanArgument& outer, const PlanArgument& inner) {
  return outer.kind == inner.kind && outer.index == inner.index && outer.offset <= inner.offset &&
         inner.offset + inner.bytes <= outer.offset + outer.bytes;
}

// Adds the range to a list, unless another one there contains it; those that it contains give way.
void add_copy(const PlanArgument& range, PlanArgument* list, int32_t& count) {
  for (int32_t i = 0; i < count; ++i)
    if (contains(list[i], range)) return;
  int32_t kept = 0;
  for (int32_t i = 0; i < count; ++i)
    if (!contains(range, list[i])) list[kept++] = list[i];
  list[kept++] = range;
  count = kept;
}

// Lists the ranges that the steps of a segment touch, or only those that they may write. The
// weights are on the host anyway.
int32_t list_copies(const PlanHeader& plan, const int32_t* order, const Segment& segment,
                    bool written, PlanArgument* list) {
  int32_t count = 0;
  for (int32_t i = segment.first; i < segment.first + segment.count; ++i) {
    const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[order[i]];
    for (uint32_t a = 0; a < step.num_arguments; ++a) {
      const PlanArgument& argument =
          plan_table<PlanArgument>(plan, plan.arguments)[step.first_argument + a];
      if (argument.kind == ArgumentKind::kWeight || argument.bytes == 0) continue;
      if (!written || argument.written == 1) add_copy(argument, list, count);
    }
  }
  return count;
}

}  // namespace

bool cut_segments(const PlanHeader& plan, const int32_t* order, int32_t count, Segments& out) {
  const auto step_at = [&](int32_t i) -> const PlanStep& {
    return plan_table<PlanStep>(plan, plan.steps)[order[i]];
  };
  size_t num_arguments = 1;
  for (int32_t i = 0; i < count; ++i) num_arguments += step_at(i).num_arguments;
  out = {};
  out.list = static_cast<Segment*>(calloc(static_cast<size_t>(count) + 1, sizeof(Segment)));
  out.copies = static_cast<PlanArgument*>(calloc(2 * num_arguments, sizeof(PlanArgument)));
  if (out.list == nullptr || out.copies == nullptr) {
    free_segments(out);
    return false;
  }
  for (int32_t i = 0; i < count; ++i) {
    const bool on_device = runs_on_device(plan, step_at(i));
    if (out.count == 0 || out.list[out.count - 1].on_device != on_device)
      out.list[out.count++] = {.on_device = on_device, .first = i};
    ++out.list[out.count - 1].count;
  }
  PlanArgument* next = out.copies;
  for (int32_t i = 0; i < out.count; ++i) {
    Segment& segment = out.list[i];
    if (segment.on_device) continue;
    segment.copies = next;
    segment.num_downloads = list_copies(plan, order, segment, false, next);
    next += segment.num_downloads;
    segment.num_uploads = list_copies(plan, order, segment, true, next);
    next += segment.num_uploads;
  }
  return true;
}

void free_segments(Segments& segments) {
  free(segments.list);
  free(segments.copies);
  segments = {};
}

}  // namespace hone::runtime
