// measure/local_runner.h - measures on this machine, in a worker process that is replaced if a
// candidate crashes it. Jobs run one at a time, so that they do not disturb each other.
#pragma once

#include <memory>

#include "hone/measure/runner.h"
#include "hone/measure/worker_process.h"

namespace hone::measure {

// Starts a runner. It is an error if no worker can be started.
[[nodiscard]] Result<std::unique_ptr<Runner>> make_local_runner(const WorkerOptions& worker = {});

}  // namespace hone::measure
