// db/roofline_store.h - stores the measured limits of devices in the same database as the trials. A
// device has one set of figures, and new ones replace the old.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/trial/roofline.h"

namespace hone::db {

// Saves the figures. `where` is as in open_store(), and `device` is target::device_key.
[[nodiscard]] Status save_roofline(std::string_view where, const std::string& device,
                                   const trial::Roofline& roofline);
// Loads the figures; nothing if the device was not measured, or if there is no database at the
// default path.
[[nodiscard]] Result<std::optional<trial::Roofline>> load_roofline(std::string_view where,
                                                                   const std::string& device);

}  // namespace hone::db
