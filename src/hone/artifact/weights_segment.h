// artifact/weights_segment.h - the weights of a shared library. The linker only reserves addresses
// for them, after everything else; once it is done, they are appended to its output as a read-only
// segment. So they are written once, and the linker needs no memory for them.
#pragma once

#include <string>

#include "hone/artifact/artifact.h"
#include "hone/artifact/elf_object.h"

namespace hone::artifact {

// Writes the object that reserves the addresses. It defines the symbol kWeightsSymbol and must be
// the last of the linker's inputs, so that the weights come after all other data.
inline constexpr const char* kWeightsSymbol = "hone_artifact_weight_data";
[[nodiscard]] Status write_weights_object(const ArtifactSpec& spec, Machine machine,
                                          const std::string& path);

// Appends the weights to a library that was linked with that object. It is an error if the linker
// did not place the addresses last.
[[nodiscard]] Status append_weights(const ArtifactSpec& spec, const std::string& path);

}  // namespace hone::artifact
