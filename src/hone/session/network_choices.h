// model/network_choices.h - of which tasks another schedule is faster inside a network, among its
// neighbours, than the one that is the fastest alone: what tune() found, for every later build.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "hone/db/store.h"
#include "hone/session/model_tasks.h"

namespace hone {

// What a network has instead of a task's fastest schedule (its steps as text).
using NetworkChoices = std::map<std::pair<uint64_t, std::string>, trial::Record>;

// The same for the same kernels in the same order and the same accuracy, whatever device they are
// to run on.
[[nodiscard]] uint64_t network_key(const ModelTasks& model);

// Those for the model's device and number of threads, without what is forgotten.
[[nodiscard]] Result<NetworkChoices> stored_choices(const ModelTasks& model,
                                                    db::ChoiceStore& store);

// Stores that the network has these schedules (by group), where they are not the fastest ones
// stored. What it had instead of the fastest before counts no more.
[[nodiscard]] Status remember_choices(const ModelTasks& model,
                                      std::span<const schedule::Steps> schedules, db::Store& store);

}  // namespace hone
