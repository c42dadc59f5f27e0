// session/network_choices.h - remembers the tasks for which another schedule is faster inside a
// network, among its neighbours, than the one that is the fastest alone. tune() finds these
// choices, and every later build uses them.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "hone/db/store.h"
#include "hone/session/model_tasks.h"

namespace hone {

// The records that a network uses, found by a task's key and the steps, as text, of its fastest
// schedule.
using NetworkChoices = std::map<std::pair<uint64_t, std::string>, trial::Record>;

// Returns a key of the network: it is the same for the same kernels in the same order and the same
// accuracy, whatever device they are to run on.
[[nodiscard]] uint64_t network_key(const ModelTasks& model);

// Returns the stored choices for the model's device and number of threads, without excluded tasks.
[[nodiscard]] Result<NetworkChoices> stored_choices(const ModelTasks& model,
                                                    db::ChoiceStore& store);

// Stores that the network uses these schedules (one per group) where they are not the fastest ones
// stored. They replace the earlier choices for the same fastest schedules.
[[nodiscard]] Status remember_choices(const ModelTasks& model,
                                      std::span<const schedule::Steps> schedules, db::Store& store);

}  // namespace hone
