#include "hone/artifact/embedded_runtime.h"

// The names of the files are set by the build. Those of the other machine, which is x86-64 on
// AArch64 and the reverse, are not if there was no cross compiler for it.
#define HONE_EMBED(name, file)                                         \
  "hone_embedded_" name ":\n.incbin \"" file "\"\nhone_embedded_" name \
  "_end:\n"                                                            \
  ".globl hone_embedded_" name ", hone_embedded_" name                 \
  "_end\n"                                                             \
  ".hidden hone_embedded_" name ", hone_embedded_" name "_end\n"

__asm__(".pushsection .rodata\n.balign 16\n" HONE_EMBED("archive", HONE_RUNTIME_ARCHIVE)
            HONE_EMBED("header", HONE_RUNTIME_HEADER)
#ifdef HONE_CROSS_ARCHIVE
                HONE_EMBED("cross_archive", HONE_CROSS_ARCHIVE)
                    HONE_EMBED("cross_libc", HONE_CROSS_LIBC)
                        HONE_EMBED("cross_libm", HONE_CROSS_LIBM)
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
#ifdef HONE_CROSS_ARCHIVE
HONE_EMBEDDED(cross_archive)
HONE_EMBEDDED(cross_libc)
HONE_EMBEDDED(cross_libm)
#endif

}  // namespace

MachineRuntime runtime_of(Machine machine) {
  if (machine == host_machine()) return {archive(), {}, {}};
#ifdef HONE_CROSS_ARCHIVE
  return {cross_archive(), cross_libc(), cross_libm()};
#else
  return {};
#endif
}

Status no_runtime(Machine machine) {
  return error(Code::kUnsupported,
               "kernels for {} cannot be linked: this Hone was built without its runtime, which "
               "needs a cross compiler: run scripts/setup.sh and build Hone again",
               machine_name(machine));
}

std::string_view runtime_header_text() { return header(); }

}  // namespace hone::artifact
