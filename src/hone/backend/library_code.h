// backend/library_code.h - adds to the code of kernels that go into a library what would take too
// long for candidates.
#pragma once

#include "hone/backend/executable.h"
#include "hone/target/target.h"

namespace hone::backend {

// Adds the binary of a device of OpenCL, if it is a device of this machine, so that whoever loads
// the library need not wait for the driver's compiler. It may be called from any thread.
void add_library_code(Executable& executable, const target::Target& target);

}  // namespace hone::backend
