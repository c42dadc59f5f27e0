// backend/gpu/nvrtc.h - compiles CUDA C by NVRTC, NVIDIA's compiler as a library, for any
// architecture and without a GPU. The library is found and opened at run time: the file that
// HONE_NVRTC names, else libnvrtc.so.13 or .12 where the loader finds it, in the toolkit
// (CUDA_HOME, /usr/local/cuda) or in the Python environment that is active (nvidia-cuda-nvrtc).
#pragma once

#include <string>
#include <vector>

#include "hone/backend/gpu/code_notes.h"
#include "hone/base/status.h"

namespace hone::backend::gpu {

struct Cubin {
  std::string data;
  std::string ptx;  // what the code was made of, which drivers compile for newer architectures
  // The notes that the code has of its kernels, without shared memory; empty if it cannot be read.
  std::vector<KernelNote> kernels;
};

[[nodiscard]] Cubin make_cubin(std::string data, std::string ptx);

// Returns whether NVRTC is there; the error says where it was looked for.
[[nodiscard]] Status find_nvrtc();
// Returns a text of all beside source and architecture that decides what compile_cuda() makes: the
// library's version and size, and the options. NVRTC must be there.
[[nodiscard]] std::string nvrtc_identity();
// Compiles a source for an architecture such as "sm_90a". It may be called from any thread. An
// error has the compiler's messages.
[[nodiscard]] Result<Cubin> compile_cuda(const std::string& source, const std::string& arch);

}  // namespace hone::backend::gpu
