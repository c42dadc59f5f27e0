#include "hone/runtime/plan_loops.h"

#include <stdlib.h>

#include "hone/runtime/plan_ranges.h"

namespace hone::runtime {
namespace {

// Returns whether the copy stays in the arena in all turns.
bool copy_fits(const PlanHeader& plan, const PlanCopy& copy, int64_t most) {
  if (!range_fits(plan.arena_bytes, copy.from, copy.bytes) ||
      !range_fits(plan.arena_bytes, copy.to, copy.bytes))
    return false;
  if (most <= 1 || copy.stride == 0) return true;
  if (copy.stride > -copy.bytes && copy.stride < copy.bytes) return false;  // over that of others
  if (copy.stride > kMostBytes || copy.stride < -kMostBytes ||
      most - 1 > kMostBytes / (copy.stride < 0 ? -copy.stride : copy.stride))
    return false;
  return range_fits(plan.arena_bytes, copy.to + (most - 1) * copy.stride, copy.bytes);
}

bool loop_fits(const PlanHeader& plan, const PlanLoop& loop) {
  const auto fits = [&](int64_t offset, int64_t bytes) {
    return offset == -1 || range_fits(plan.arena_bytes, offset, bytes);
  };
  if (!string_fits(plan, loop.name) || !string_fits(plan, loop.beyond) || loop.most < 0 ||
      loop.may_want_more > 1 || loop.rank > kMostShownRank ||
      (loop.rank > 0 && !range_fits(plan.arena_bytes, loop.shapes, int64_t{16} * loop.rank)) ||
      !fits(loop.condition, 1) || !fits(loop.limit, 8) || !fits(loop.turn, 8) ||
      !fits(loop.turns, 8) || loop.first_step > loop.end_step || loop.end_step > plan.num_steps ||
      !entries_fit(loop.first_copy, loop.num_copies, plan.num_copies))
    return false;
  for (uint32_t i = 0; i < loop.num_copies; ++i) {
    const PlanCopy& copy = plan_table<PlanCopy>(plan, plan.copies)[loop.first_copy + i];
    if (!copy_fits(plan, copy, loop.most)) return false;
  }
  return true;
}

// Returns whether the loops first to end lie one behind the other among these steps, with those
// inside them, and no step joins one of another turn.
bool loops_nest(const PlanHeader& plan, uint32_t first, uint32_t end, uint32_t step,
                uint32_t end_step, int depth) {
  constexpr int kMostDepth = 64;
  if (depth > kMostDepth) return false;
  const PlanLoop* loops = plan_table<PlanLoop>(plan, plan.loops);
  const PlanStep* steps = plan_table<PlanStep>(plan, plan.steps);
  const auto begins = [&](uint32_t at) { return at >= plan.num_steps || steps[at].joins == 0; };
  for (uint32_t i = first; i < end;) {
    const PlanLoop& loop = loops[i];
    if (loop.first_step < step || loop.end_step > end_step || !begins(loop.first_step) ||
        !begins(loop.end_step) || loop.num_nested > end - i - 1 ||
        !loops_nest(plan, i + 1, i + 1 + loop.num_nested, loop.first_step, loop.end_step,
                    depth + 1))
      return false;
    step = loop.end_step;
    i += 1 + loop.num_nested;
  }
  return true;
}

// Bytes of the arena.
struct Span {
  int64_t begin;
  int64_t end;
  bool written;
};

bool meet(const Span& a, const Span& b) { return a.begin < b.end && b.begin < a.end; }

Span from_of(const PlanCopy& copy) { return {copy.from, copy.from + copy.bytes, false}; }

// What the copy writes in all turns.
Span to_of(const PlanCopy& copy, int64_t most) {
  const int64_t last = copy.to + (most > 1 ? most - 1 : 0) * copy.stride;
  return {copy.to < last ? copy.to : last, (copy.to < last ? last : copy.to) + copy.bytes, true};
}

int by_begin(const void* a, const void* b) {
  const int64_t x = static_cast<const Span*>(a)->begin;
  const int64_t y = static_cast<const Span*>(b)->begin;
  return x < y ? -1 : x > y ? 1 : 0;
}

// Returns whether what one of the spans writes is part of another one. It sorts them.
bool writes_over_others(Span* spans, uint32_t count) {
  qsort(spans, count, sizeof(Span), by_begin);
  int64_t end = 0;          // of all spans before
  int64_t written_end = 0;  // of those of them that are written
  for (uint32_t i = 0; i < count; ++i) {
    const Span& span = spans[i];
    if (span.begin < (span.written ? end : written_end)) return true;
    if (span.end > end) end = span.end;
    if (span.written && span.end > written_end) written_end = span.end;
  }
  return false;
}

// A loop's copies, which are made one after the other, read no byte that one of them writes.
bool copies_are_apart(const PlanHeader& plan, const PlanLoop& loop, Span* spans) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < loop.num_copies; ++i) {
    const PlanCopy& copy = plan_table<PlanCopy>(plan, plan.copies)[loop.first_copy + i];
    if (copy.bytes == 0) continue;
    spans[count++] = from_of(copy);
    spans[count++] = to_of(copy, loop.most);
  }
  return !writes_over_others(spans, count);
}

// A kernel may read the sizes, as an argument that begins where they do.
bool argument_meets(const PlanArgument& argument, const Span& sizes) {
  if (argument.kind != ArgumentKind::kArena) return false;
  if (argument.written == 1 && argument.bytes == 0) return false;  // an empty tensor
  const int64_t bytes = argument.bytes > 0 ? argument.bytes : 1;
  if (!meet({argument.offset, argument.offset + bytes, false}, sizes)) return false;
  return argument.offset != sizes.begin || argument.written == 1;
}

bool loop_writes(const PlanHeader& plan, const PlanLoop& loop, const Span& sizes) {
  const auto is_there = [&](int64_t offset) {
    return offset >= 0 && meet({offset, offset + 8, true}, sizes);
  };
  if (is_there(loop.turn) || is_there(loop.turns)) return true;
  for (uint32_t i = 0; i < loop.num_copies; ++i) {
    const PlanCopy& copy = plan_table<PlanCopy>(plan, plan.copies)[loop.first_copy + i];
    if (copy.bytes > 0 && meet(to_of(copy, loop.most), sizes)) return true;
  }
  return false;
}

}  // namespace

const char* loops_check(const PlanHeader& plan) {
  if (plan.num_loops > 0 && plan.device != DeviceKind::kNone)
    return "the plan has loops, which run on the host only";
  uint32_t copies = 0;
  for (uint32_t i = 0; i < plan.num_loops; ++i) {
    const PlanLoop& loop = plan_table<PlanLoop>(plan, plan.loops)[i];
    if (!loop_fits(plan, loop)) return "a loop of the plan is out of range";
    if (loop.num_copies > 0 && loop.first_copy != copies)
      return "the copies of the plan's loops are not in their order";
    copies += loop.num_copies;
  }
  if (!loops_nest(plan, 0, plan.num_loops, 0, plan.num_steps, 0))
    return "the loops of the plan do not fit together";
  return nullptr;
}

const char* written_places_check(const PlanHeader& plan) {
  constexpr int64_t kSizesBytes = int64_t{kMaxForms} * 8;
  if (plan.sizes >= 0) {
    const Span sizes = {plan.sizes, plan.sizes + kSizesBytes, true};
    for (uint32_t i = 0; i < plan.num_arguments; ++i)
      if (argument_meets(plan_table<PlanArgument>(plan, plan.arguments)[i], sizes))
        return "an argument of the plan overlaps its sizes";
    for (uint32_t i = 0; i < plan.num_loops; ++i)
      if (loop_writes(plan, plan_table<PlanLoop>(plan, plan.loops)[i], sizes))
        return "a loop of the plan writes over its sizes";
  }
  if (plan.num_copies == 0) return nullptr;
  Span* const spans = static_cast<Span*>(malloc(2 * sizeof(Span) * uint64_t{plan.num_copies}));
  if (spans == nullptr) return "there is no memory to check the plan";
  bool apart = true;
  for (uint32_t i = 0; apart && i < plan.num_loops; ++i)
    apart = copies_are_apart(plan, plan_table<PlanLoop>(plan, plan.loops)[i], spans);
  free(spans);
  return apart ? nullptr : "copies of a loop of the plan overlap";
}

}  // namespace hone::runtime
