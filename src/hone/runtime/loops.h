// runtime/loops.h - runs the steps of a plan with its loops (PlanLoop): the control that is common
// to the runtime and to what runs a plan's steps without a file (session/step_run.h).
#pragma once

#include <stdio.h>
#include <string.h>

#include "hone/runtime/plan.h"

namespace hone::runtime {

// Writes the message of a run that a loop ends, of at most `size` bytes: `text` is the loop's, and
// behind it are the two shapes that it names, if any: "...: [2, 3] and [2, 4]".
inline void write_fault(char* message, size_t size, const char* text, const PlanLoop& loop,
                        const char* arena) {
  int used = snprintf(message, size, "%s", text);
  for (uint32_t i = 0; i < 2 * loop.rank && used >= 0 && static_cast<size_t>(used) < size; ++i) {
    int64_t extent;
    memcpy(&extent, arena + loop.shapes + static_cast<int64_t>(i) * 8, sizeof extent);
    const char* const before = i == 0 ? ": [" : i == loop.rank ? "] and [" : ", ";
    used += snprintf(message + used, size - static_cast<size_t>(used), "%s%lld%s", before,
                     static_cast<long long>(extent), i + 1 == 2 * loop.rank ? "]" : "");
  }
}

// `loops` are those of a plan, of which each one's inner ones stand behind it, and `copies` their
// copies, all in `arena`. `run(first, end)` runs these steps, and `fail(loop)` says that the loop
// would have more turns than it may. Both return 0 or what ends the run.
template <typename Run, typename Fail>
class LoopRunner {
 public:
  LoopRunner(const PlanLoop* loops, const PlanCopy* copies, char* arena, Run run, Fail fail)
      : loops_(loops), copies_(copies), arena_(arena), run_(run), fail_(fail) {}

  // Runs the steps first to end, with the loops first_loop to end_loop, which lie among them.
  int run(uint32_t first, uint32_t end, uint32_t first_loop, uint32_t end_loop) const {
    for (uint32_t i = first_loop; i < end_loop; i += 1 + loops_[i].num_nested) {
      const PlanLoop& loop = loops_[i];
      if (loop.first_step > first)
        if (const int result = run_(first, loop.first_step)) return result;
      if (const int result = repeat(i)) return result;
      first = loop.end_step;
    }
    return first < end ? run_(first, end) : 0;
  }

 private:
  [[nodiscard]] int64_t integer(int64_t offset) const {
    int64_t value;
    memcpy(&value, arena_ + offset, sizeof value);
    return value;
  }
  void put(int64_t offset, int64_t value) const {
    if (offset >= 0) memcpy(arena_ + offset, &value, sizeof value);
  }

  int repeat(uint32_t index) const {
    const PlanLoop& loop = loops_[index];
    int64_t turn = 0;
    for (;; ++turn) {
      if (loop.condition >= 0 && arena_[loop.condition] == 0) break;
      if (loop.limit >= 0 && turn >= integer(loop.limit)) break;
      if (turn >= loop.most) {
        if (loop.may_want_more != 0) return fail_(loop);
        break;
      }
      put(loop.turn, turn);
      if (const int result =
              run(loop.first_step, loop.end_step, index + 1, index + 1 + loop.num_nested))
        return result;
      for (uint32_t i = 0; i < loop.num_copies; ++i) {
        const PlanCopy& copy = copies_[loop.first_copy + i];
        memcpy(arena_ + copy.to + turn * copy.stride, arena_ + copy.from,
               static_cast<size_t>(copy.bytes));
      }
    }
    put(loop.turns, turn);
    return 0;
  }

  const PlanLoop* loops_;
  const PlanCopy* copies_;
  char* arena_;
  const Run run_;
  const Fail fail_;
};

}  // namespace hone::runtime
