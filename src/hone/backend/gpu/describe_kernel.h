// backend/gpu/describe_kernel.h - describes a kernel to people: its lines of C, and what is known
// of its binary.
#pragma once

#include <string>

#include "hone/backend/gpu/code_notes.h"
#include "hone/backend/gpu/print_c.h"
#include "hone/backend/inspection.h"
#include "hone/runtime/device/code.h"

namespace hone::backend::gpu {

// Describes a kernel of a source. `image` is what was made of the source; numbers that are not
// known are 0. The text begins with comments that say what is known.
[[nodiscard]] InnerLoop describe_kernel(const Kernel& kernel, const std::string& source,
                                        const CodeNotes& notes, const runtime::CodeImage& image);

}  // namespace hone::backend::gpu
