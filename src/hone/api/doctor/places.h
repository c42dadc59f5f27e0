// api/doctor/places.h - the files and folders that Hone writes. Nothing is created.
#pragma once

#include <string>

#include "hone/doctor.h"

namespace hone::doctor {

// The folder for temporary files, in which libraries are loaded, too.
[[nodiscard]] Finding look_at_temporary_folder();
// `where` is as RecordOptions::db.
[[nodiscard]] Finding look_at_database(const std::string& where);
// The folder with code that was compiled for GPUs.
[[nodiscard]] Finding look_at_code_cache();

}  // namespace hone::doctor
