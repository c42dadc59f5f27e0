// base/temporary_name.h - names of temporary files and folders that say who made them, so that what
// a killed process left behind is recognised and removed by a later one.
//
// A name ends in ".hone-PID-START-RANDOM": the process, and when it began, in the system's ticks
// since it was booted. While it lives it holds a lock (flock) on what it made. Removed is only what
// belongs to this user, whose process is gone and whose lock nobody holds; the lock also speaks for
// processes of other containers that share the folder.
#pragma once

#include <string>
#include <string_view>

namespace hone {

inline constexpr int kMostNames = 100;  // that are tried before a folder counts as full of them

[[nodiscard]] std::string temporary_name(std::string_view prefix);

// Removes what was left behind in a folder; this process looks at each folder once.
void clear_stale_files(const std::string& folder);

// For a process that must end at once: removes what it made itself, in all folders that
// clear_stale_files() was called for. Does nothing where another thread is in that function.
void remove_own_temporaries();

}  // namespace hone
