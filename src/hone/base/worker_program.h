// base/worker_program.h - the program that works apart: hone-worker, which is installed
// with Hone, so that any process that uses Hone as a library can tune.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace hone {

// Returns `given`, if it is not empty; else what the environment variable HONE_WORKER names; else
// the first of the places of an installation that holds the program (base/installation.h):
// PREFIX/libexec/hone/hone-worker, the folder of the program or library that contains Hone, or
// libexec/hone/hone-worker below the configured prefix. The error names every place that was tried.
// HONE_WORKER must be an absolute path.
[[nodiscard]] Result<std::string> find_worker_program(const std::string& given);

}  // namespace hone
