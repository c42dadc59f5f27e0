// hone-worker: the process that runs and times candidates, or compiles kernels of GPUs, so that a
// crash costs one candidate only. Hone starts it with a socket (base/worker_child.h): it is not for
// people.
#include <cstdio>
#include <string_view>

#include "hone/backend/gpu/compile_apart.h"
#include "hone/base/options.h"
#include "hone/measure/worker.h"

namespace {

using hone::runtime::DeviceKind;

// Returns the kind of device that an option names, or kNone.
DeviceKind kind_of(std::string_view option) {
  if (option == "--opencl") return DeviceKind::kOpenCl;
  return option == "--cuda" ? DeviceKind::kCuda : DeviceKind::kNone;
}

}  // namespace

int main(int argc, char** argv) {
  hone::measure::WorkerDevice device;
  if (argc == 5) device = {kind_of(argv[1]), argv[2]};
  const bool compiles = argc == 4 && std::string_view(argv[1]) == "--compile-cuda";
  const bool good = argc == 3 || compiles || device.kind != DeviceKind::kNone;
  if (good && std::string_view(argv[argc - 2]) == "--fd") {
    const hone::Result<int64_t> fd = hone::parse_int(argv[argc - 1], 0, 1 << 20);
    if (fd.ok() && compiles) return hone::backend::gpu::compile_worker_main(static_cast<int>(*fd));
    if (fd.ok()) return hone::measure::worker_main(static_cast<int>(*fd), device);
  }
  std::fputs("hone-worker: Hone starts this program itself, with --fd and an open socket\n",
             stderr);
  return 2;
}
