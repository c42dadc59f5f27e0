// artifact/image_object.h - writes the relocatable object that tells the runtime where a model's
// plan, kernels and weights are. In a static library it has the weights, too; those of a shared
// library are added when it is linked (artifact/weights_segment.h).
#pragma once

#include <string>

#include "hone/artifact/artifact.h"
#include "hone/artifact/elf_object.h"

namespace hone::artifact {

struct ImageOptions {
  Machine machine = Machine::kX86_64;
  // For a shared library: with the note that distinguishes an artifact from other libraries.
  bool shared = true;
  int64_t near_weights = 0;  // as in ArtifactOptions
};

// Writes the object. If the prefix is not the runtime's own, it also renames the interface, by one
// branch per function.
[[nodiscard]] Status write_image_object(const ArtifactSpec& spec, const std::string& plan,
                                        const ImageOptions& options, const std::string& path);

}  // namespace hone::artifact
