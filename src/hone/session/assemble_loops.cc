#include "hone/session/assemble_loops.h"

#include <algorithm>

namespace hone {

void add_loops(const graph::TaskList& tasks, const graph::MemoryPlan& plan, Assembly& assembly) {
  const auto place = [&](int buffer) {
    return buffer < 0 ? -1 : plan.offsets[static_cast<size_t>(buffer)];
  };
  // The number of steps before a begin or end.
  const auto steps_before = [&](int boundary) {
    // The steps are in the order of the boundaries before them.
    const auto end =
        std::partition_point(assembly.calls.begin(), assembly.calls.end(),
                             [&](int call) { return tasks.boundaries_before(call) <= boundary; });
    return static_cast<uint32_t>(end - assembly.calls.begin());
  };
  artifact::ArtifactSpec& spec = assembly.spec;
  for (const graph::TaskLoop& loop : tasks.loops) {
    artifact::ArtifactLoop& made = spec.loops.emplace_back();
    made.name = loop.name;
    made.beyond = loop.beyond;
    made.plan = {.most = loop.most,
                 .condition = place(loop.condition),
                 .limit = place(loop.limit),
                 .turn = place(loop.turn),
                 .turns = place(loop.turns),
                 .shapes = place(loop.shapes),
                 .first_step = steps_before(loop.begin),
                 .end_step = steps_before(loop.end),
                 .first_copy = static_cast<uint32_t>(spec.copies.size()),
                 .num_copies = static_cast<uint32_t>(loop.copies.size()),
                 .num_nested = static_cast<uint32_t>(loop.nested),
                 .rank = loop.rank};
    for (const graph::LoopCopy& copy : loop.copies)
      spec.copies.push_back(
          {place(copy.from), place(copy.to) + copy.start, copy.bytes, copy.stride});
  }
}

}  // namespace hone
