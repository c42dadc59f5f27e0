// graph/memory_plan.h - places the arena's buffers. Buffers that are not live at the same time may
// share memory, and so may an operand whose last use is a task and the result of that task. Calls
// that run together have one time step, in which all their buffers are live. A buffer with a border
// is zeroed once, when a model is created, and its border is never written, so it shares memory
// only with buffers of the same shape and border, element for element. `hone.sizes` keeps its
// memory from run to run. What a loop reads from outside and carries from turn to turn lives
// through all of it; its begin and end are time steps of their own.
#pragma once

#include <span>

#include "hone/graph/tasks.h"

namespace hone::graph {

// A call may overwrite one buffer with another (ir/in_place.h).
struct InPlace {
  int call;
  int input, output;  // indices of TaskList::buffers
};

struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;  // a cache line, which is an AVX-512 vector
  std::vector<int64_t> offsets;              // per TaskList::buffers; -1 for those not in the arena
  std::vector<int> time_steps;               // per call, with those of the ends of loops between
  // First and last time step of a buffer's use; -1 if there is none.
  std::vector<std::pair<int, int>> lives;
  int64_t arena_bytes = 0;
  // Ranges [offset, offset + bytes) that must be zero before the first run.
  std::vector<std::pair<int64_t, int64_t>> zeroed;
};

// Plans the memory. `in_place` are the pairs that the kernels allow, of which those whose buffers
// are needed elsewhere are ignored. `time_steps` has the time step of each call, from 0 on, equal
// for calls that run together; if it is empty, calls run one after the other.
[[nodiscard]] MemoryPlan plan_memory(const TaskList& tasks, std::span<const InPlace> in_place = {},
                                     std::span<const int> time_steps = {});
// Checks that no two buffers that are live at the same time overlap unless a call works in place,
// and that a buffer with a border overlaps only with equal ones.
[[nodiscard]] Status verify(const MemoryPlan& plan, const TaskList& tasks,
                            std::span<const InPlace> in_place = {});

}  // namespace hone::graph
