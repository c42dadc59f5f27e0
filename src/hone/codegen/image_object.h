// codegen/image_object.h - the relocatable object that names a model's plan, kernels and weights to
// the runtime it is linked with.
#pragma once

#include <string>

#include "hone/codegen/artifact.h"
#include "hone/codegen/elf_object.h"

namespace hone::codegen {

// Also renames the interface, by one branch per function, if the prefix is not the runtime's own.
// `with_note`: the note that tells an artifact from any other shared library.
[[nodiscard]] Status write_image_object(const ArtifactSpec& spec, const std::string& plan,
                                        Machine machine, bool with_note, const std::string& path);

}  // namespace hone::codegen
