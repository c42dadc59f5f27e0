// backend/cpu/cpu_backend.h - the back end of CPUs, by LLVM. The code of its executables is
// relocatable ELF objects whose functions are of type hone_kernel (backend/cpu/compiler.h); equal
// programs are compiled once in a process (backend/cpu/code_cache.h).
#pragma once

#include <memory>

#include "hone/backend/backend.h"

namespace hone::backend::cpu {

[[nodiscard]] std::shared_ptr<const Backend> make_backend();

}  // namespace hone::backend::cpu
