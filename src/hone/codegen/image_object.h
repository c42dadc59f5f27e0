// codegen/image_object.h - the relocatable object that names a model's plan, kernels and weights to
// the runtime it is linked with.
#pragma once

#include <string>

#include "hone/codegen/artifact.h"
#include "hone/codegen/elf_object.h"

namespace hone::codegen {

struct ImageOptions {
  Machine machine = Machine::kX86_64;
  bool with_note = true;     // that tells an artifact from any other shared library
  int64_t near_weights = 0;  // of ArtifactOptions
};

// Also renames the interface, by one branch per function, if the prefix is not the runtime's own.
[[nodiscard]] Status write_image_object(const ArtifactSpec& spec, const std::string& plan,
                                        const ImageOptions& options, const std::string& path);

}  // namespace hone::codegen
