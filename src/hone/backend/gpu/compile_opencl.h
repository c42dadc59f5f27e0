// backend/gpu/compile_opencl.h - makes binaries of OpenCL C for a device of this machine, by its
// driver in other processes (compile_pool.h), so that who loads the code need not wait for the
// driver's compiler.
#pragma once

#include <string>
#include <vector>

#include "hone/backend/executable.h"
#include "hone/base/status.h"
#include "hone/target/gpu.h"

namespace hone::backend::gpu {

struct OpenClProgram {
  std::string source, options;
  std::vector<EntryPoint> kernels;
  std::vector<int64_t> param_bytes;  // sizes of the buffers that each kernel takes
};
struct OpenClBinary {
  std::string device;  // the device's name and driver, as in runtime::CodeImage
  std::string data;
};

// Adds the device's binary to the code of a program, if the target is a device of OpenCL that this
// machine has. Where that fails, the source is the only image, as before. It may be called from any
// thread.
void add_opencl_binary(Executable& executable, const target::Gpu& gpu);

// Compiles for the first device with this text in its name or its platform's.
[[nodiscard]] Result<OpenClBinary> compile_opencl_apart(const OpenClProgram& program,
                                                        const std::string& device);

// Serves compile_opencl_apart() in a worker program.
int compile_opencl_worker_main(int fd, const std::string& device);

}  // namespace hone::backend::gpu
