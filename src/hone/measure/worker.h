// measure/worker.h - the process that runs candidates (tools/worker), started with a socket.
#pragma once

#include <string>

#include "hone/runtime/device/device_properties.h"

namespace hone::measure {

// The device of a worker that measures code for GPUs.
struct WorkerDevice {
  runtime::DeviceKind kind = runtime::DeviceKind::kNone;  // kNone: the worker is for CPUs
  std::string name;  // in the device's name or its platform's; empty for the first of the kind
};

// Serves the jobs that arrive on the socket `fd` until the other side closes it, and returns the
// exit status. It closes every other descriptor but 0, 1 and 2, ignores SIGINT, writes no core file
// and dies with the thread that started it. A device is opened before the first job. The worker
// ends when nothing can run there any more.
int worker_main(int fd, const WorkerDevice& device = {});

}  // namespace hone::measure
