// learn/readable_tasks.h - leaves out of a data set what a net cannot read: tasks whose programs
// have more loops than the template of graphs (cost/inputs/program_graph.h). A net that reads
// graphs as they are reads every task.
#pragma once

#include "hone/cost/net/net.h"
#include "hone/learn/dataset.h"
#include "hone/target/target.h"

namespace hone::learn {

struct UnreadableTasks {
  std::set<uint64_t> keys;
  int64_t schedules = 0;
  std::string why;  // the reason of the first one, which it names; "" if there is none
  void merge(const UnreadableTasks& more);
};
// Removes the tasks of which the net cannot read every schedule, and returns them. It is an error
// if a schedule does not apply to its task.
[[nodiscard]] Result<UnreadableTasks> remove_unreadable(Dataset& dataset,
                                                        const target::Target& target,
                                                        const cost::net::Net& model, int threads);

}  // namespace hone::learn
