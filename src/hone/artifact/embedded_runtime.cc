#include "hone/artifact/embedded_runtime.h"

// The names of the files are set by the build. Those of AArch64 are not, if this is its machine or
// there was no cross compiler for it.
#define HONE_EMBED(name, file)                                         \
  "hone_embedded_" name ":\n.incbin \"" file "\"\nhone_embedded_" name \
  "_end:\n"                                                            \
  ".globl hone_embedded_" name ", hone_embedded_" name                 \
  "_end\n"                                                             \
  ".hidden hone_embedded_" name ", hone_embedded_" name "_end\n"

__asm__(".pushsection .rodata\n.balign 16\n" HONE_EMBED("archive", HONE_RUNTIME_ARCHIVE)
            HONE_EMBED("header", HONE_RUNTIME_HEADER)
#ifdef HONE_AARCH64_ARCHIVE
                HONE_EMBED("aarch64_archive", HONE_AARCH64_ARCHIVE)
                    HONE_EMBED("aarch64_libc", HONE_AARCH64_LIBC)
                        HONE_EMBED("aarch64_libm", HONE_AARCH64_LIBM)
#endif
                            ".popsection\n");

#define HONE_EMBEDDED(name)                                                             \
  extern "C" {                                                                          \
  __attribute__((visibility("hidden"))) extern const char hone_embedded_##name[];       \
  __attribute__((visibility("hidden"))) extern const char hone_embedded_##name##_end[]; \
  }                                                                                     \
  static std::string_view name() {                                                      \
    return {hone_embedded_##name,                                                       \
            static_cast<size_t>(hone_embedded_##name##_end - hone_embedded_##name)};    \
  }

namespace hone::artifact {
namespace {

HONE_EMBEDDED(archive)
HONE_EMBEDDED(header)
#ifdef HONE_AARCH64_ARCHIVE
HONE_EMBEDDED(aarch64_archive)
HONE_EMBEDDED(aarch64_libc)
HONE_EMBEDDED(aarch64_libm)
#endif

}  // namespace

MachineRuntime runtime_of(Machine machine) {
  if (machine == host_machine()) return {archive(), {}, {}};
#ifdef HONE_AARCH64_ARCHIVE
  if (machine == Machine::kAArch64) return {aarch64_archive(), aarch64_libc(), aarch64_libm()};
#endif
  return {};
}

Status no_runtime(Machine machine, Machine host) {
  const std::string_view name = machine_name(machine);
  // cmake/HoneCrossRuntime.cmake is asked for that of AArch64 alone.
  if (host == Machine::kX86_64)
    return error(Code::kUnsupported,
                 "kernels for {} cannot be linked: this Hone was built without its runtime, which "
                 "needs a cross compiler: run scripts/setup.sh and build Hone again",
                 name);
  return error(Code::kUnsupported,
               "kernels for {} cannot be linked: a Hone for {} has no runtime of other machines, "
               "expected a device of this one, or a Hone on x86-64 that compiles the model",
               name, machine_name(host));
}

std::string_view runtime_header_text() { return header(); }

}  // namespace hone::artifact
