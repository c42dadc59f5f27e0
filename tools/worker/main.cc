// hone-worker: the process that runs and times candidates, or compiles kernels of GPUs, so that a
// crash costs one candidate only. Hone starts it with a socket (base/worker_child.h): it is not for
// people.
#include <cstdio>
#include <string_view>

#include "hone/backend/gpu/compile_apart.h"
#include "hone/backend/gpu/compile_opencl.h"
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
  const std::string_view what = argc > 3 ? argv[1] : "";
  if (argc >= 3 && std::string_view(argv[argc - 2]) == "--fd") {
    const hone::Result<int64_t> parsed = hone::parse_int(argv[argc - 1], 0, 1 << 20);
    const int fd = parsed.ok() ? static_cast<int>(*parsed) : -1;
    if (fd >= 0 && argc == 3) return hone::measure::worker_main(fd);
    if (fd >= 0 && argc == 4 && what == "--compile-cuda")
      return hone::backend::gpu::compile_worker_main(fd);
    if (fd >= 0 && argc == 5 && what == "--compile-opencl")
      return hone::backend::gpu::compile_opencl_worker_main(fd, argv[2]);
    if (fd >= 0 && argc == 5 && kind_of(what) != DeviceKind::kNone)
      return hone::measure::worker_main(fd, {kind_of(what), argv[2]});
  }
  std::fputs("hone-worker: Hone starts this program itself, with --fd and an open socket\n",
             stderr);
  return 2;
}
