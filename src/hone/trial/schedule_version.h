// trial/schedule_version.h - which compiler and space stored schedules belong to.
#pragma once

namespace hone {

// The version of the compiler and of the space: stored times and decisions of one version can be
// compared. A new decision (older points get its default) and code that is a few per cent faster
// for the same steps do not change it.
inline constexpr const char* kScheduleVersion = "0.2";

}  // namespace hone
