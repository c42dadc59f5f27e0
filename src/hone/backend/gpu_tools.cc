#include "hone/backend/gpu_tools.h"

#include "hone/backend/gpu/code_files.h"
#include "hone/backend/gpu/nvrtc.h"

namespace hone::backend {

Status find_cuda_compiler() { return gpu::find_nvrtc(); }

std::string gpu_code_folder() { return gpu::code_folder(); }

}  // namespace hone::backend
