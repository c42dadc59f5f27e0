// db/sensitivity_store.h - stores how much the roles of decisions matter on a device, task by task,
// in the same database as the trials. What is measured of a task replaces what was.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/trial/sensitivity.h"

namespace hone::db {

// Saves all or none. `where` is as in open_store(), and `device` is target::device_key.
[[nodiscard]] Status save_sensitivities(std::string_view where, const std::string& device,
                                        std::span<const trial::TaskSensitivity> tasks);
// Loads what was measured on a device with so many threads, in the order of the tasks' keys;
// nothing if nothing was measured, or if there is no database at the default path. It is an error
// if all of it has another version than trial::kSensitivityVersion.
[[nodiscard]] Result<std::vector<trial::TaskSensitivity>> load_sensitivities(
    std::string_view where, const std::string& device, int threads);

}  // namespace hone::db
