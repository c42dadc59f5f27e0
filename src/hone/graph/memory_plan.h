// graph/memory_plan.h - places the arena's buffers: what does not live at the same time may share
// memory, and so may a task's operand that nobody needs any more with the result that it is read
// for. Calls that run together count as one moment, in which all their buffers live. A buffer with
// a border is zeroed once, when a model is created, and its border is never written; so it shares
// only with buffers of the same shape and border, element for element.
#pragma once

#include <span>

#include "hone/graph/tasks.h"

namespace hone::graph {

// A call may overwrite one buffer with another (ir/in_place.h).
struct InPlace {
  int call;
  int input, output;  // of TaskList::buffers
};

struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;  // one cache line, one AVX-512 vector
  std::vector<int64_t> offsets;              // per TaskList::buffers, -1 for those not in the arena
  std::vector<int> moments;                  // per call: when it runs
  std::vector<std::pair<int, int>> lives;    // first and last moment of a buffer's use; -1: none
  int64_t arena_bytes = 0;
  // Ranges [offset, offset + bytes) that must be zero before the first run.
  std::vector<std::pair<int64_t, int64_t>> zeroed;
};

// `in_place`: what the kernels allow; pairs whose buffers are needed elsewhere are passed over.
// `moments`: when each call runs, from 0 on, the same for those that run together; empty: one after
// the other.
[[nodiscard]] MemoryPlan plan_memory(const TaskList& tasks, std::span<const InPlace> in_place = {},
                                     std::span<const int> moments = {});
// That no two buffers that live at the same time overlap unless a call works in place, and that
// nothing but its like overlaps a buffer with a border.
[[nodiscard]] Status verify(const MemoryPlan& plan, const TaskList& tasks,
                            std::span<const InPlace> in_place = {});

}  // namespace hone::graph
