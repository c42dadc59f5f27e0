#include "hone/backend/library_code.h"

#include "hone/backend/gpu/compile_opencl.h"

namespace hone::backend {

void add_library_code(Executable& executable, const target::Target& target) {
  if (target.kind() == target::Kind::kGpu) gpu::add_opencl_binary(executable, target.gpu());
}

}  // namespace hone::backend
