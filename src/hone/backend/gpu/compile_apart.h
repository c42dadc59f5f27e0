// backend/gpu/compile_apart.h - compiles CUDA C by NVRTC in other processes (compile_pool.h), as
// NVRTC compiles one source at a time in a process. Where there is no worker program, it is
// compiled in this process. Code is kept in files (code_files.h) where that is wanted
// (backend/keeps_code.h).
#pragma once

#include "hone/backend/gpu/nvrtc.h"

namespace hone::backend::gpu {

// Does what compile_cuda() does.
[[nodiscard]] Result<Cubin> compile_cuda_apart(const std::string& source, const std::string& arch);

// Serves compile_cuda_apart() in a worker program: reads sources from the socket `fd` until the
// other side closes it, and returns the exit status.
int compile_worker_main(int fd);

}  // namespace hone::backend::gpu
