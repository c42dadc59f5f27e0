// artifact/embedded_runtime.h - the runtime's static libraries and the text of its C header, as
// bytes of this program, so that artifacts can be made on any machine.
#pragma once

#include <string_view>

#include "hone/artifact/elf_object.h"

namespace hone::artifact {

// The parts that libraries for a machine are linked from, beside kernels.
struct MachineRuntime {
  std::string_view archive;  // libhone_runtime.a; empty if this program has none for the machine
  // Stubs of the machine's libc.so.6 and libm.so.6, with their names and symbols. Empty for the
  // machine of this process, which has these libraries.
  std::string_view libc, libm;
};
[[nodiscard]] MachineRuntime runtime_of(Machine machine);
using Runtimes = MachineRuntime (*)(Machine);
// Returns the error that this program has no runtime for a machine. It says what to do.
[[nodiscard]] Status no_runtime(Machine machine);

[[nodiscard]] std::string_view runtime_header_text();  // runtime/hone_model.h

}  // namespace hone::artifact
