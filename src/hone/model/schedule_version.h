// schedule_version.h - which compiler and space stored schedules belong to.
#pragma once

namespace hone {

// Of compiler and space: what makes stored times and decisions comparable. A new decision (older
// points get its default) and code that is a few per cent faster for the same steps leave it as it
// is.
inline constexpr const char* kScheduleVersion = "0.2";

}  // namespace hone
