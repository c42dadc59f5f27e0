#include "hone/artifact/embedded_runtime.h"

// HONE_RUNTIME_ARCHIVE and HONE_RUNTIME_HEADER are paths, set by the build.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    "hone_embedded_archive:\n"
    ".incbin \"" HONE_RUNTIME_ARCHIVE
    "\"\n"
    "hone_embedded_archive_end:\n"
    "hone_embedded_header:\n"
    ".incbin \"" HONE_RUNTIME_HEADER
    "\"\n"
    "hone_embedded_header_end:\n"
    ".globl hone_embedded_archive, hone_embedded_archive_end\n"
    ".globl hone_embedded_header, hone_embedded_header_end\n"
    ".hidden hone_embedded_archive, hone_embedded_archive_end\n"
    ".hidden hone_embedded_header, hone_embedded_header_end\n"
    ".popsection\n");

extern "C" {
__attribute__((visibility("hidden"))) extern const char hone_embedded_archive[];
__attribute__((visibility("hidden"))) extern const char hone_embedded_archive_end[];
__attribute__((visibility("hidden"))) extern const char hone_embedded_header[];
__attribute__((visibility("hidden"))) extern const char hone_embedded_header_end[];
}

namespace hone::artifact {

std::string_view runtime_archive() {
  return {hone_embedded_archive,
          static_cast<size_t>(hone_embedded_archive_end - hone_embedded_archive)};
}

std::string_view runtime_header_text() {
  return {hone_embedded_header,
          static_cast<size_t>(hone_embedded_header_end - hone_embedded_header)};
}

}  // namespace hone::artifact
