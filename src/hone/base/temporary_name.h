// base/temporary_name.h - names temporary files and folders after the process that made them, so
// that a later process recognises and removes those that a killed process left behind.
//
// A name ends in ".hone-PID-START-RANDOM", where START is when the process began, in the system's
// ticks since boot. While the process lives it holds a lock (flock) on each of its files and
// folders. Another process removes one only if it belongs to the same user, its process is gone and
// nobody holds its lock; the lock also protects files of processes in other containers that share
// the folder.
#pragma once

#include <string>
#include <string_view>

namespace hone {

inline constexpr int kMostNames =
    100;  // names that are tried before creating a file in a folder fails

[[nodiscard]] std::string temporary_name(std::string_view prefix);

// Removes the files in a folder that killed processes left behind. This process looks at each
// folder once.
void clear_stale_files(const std::string& folder);

// A process that must end at once calls this. It removes the process's own files in all folders
// that clear_stale_files() was called for. It does nothing while another thread is in that
// function.
void remove_own_temporaries();

}  // namespace hone
