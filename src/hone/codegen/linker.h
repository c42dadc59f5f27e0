// codegen/linker.h - runs the system's linker on the objects in one folder.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::codegen {

// The program's path. `wanted` empty: the first of ld, ld.lld, ld.lld-22 in PATH.
[[nodiscard]] Result<std::string> find_linker(const std::string& wanted);

// Runs in `folder`, so that no path gets into the output. `inputs` and `output` are names there;
// only the symbols of `exports` are visible. Links against this process's own libc and libm.
[[nodiscard]] Status link_shared_library(const std::string& linker, const std::string& folder,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<std::string>& exports,
                                         const std::string& output);

// The same inputs as one relocatable object. What they do not define stays undefined.
[[nodiscard]] Status link_object(const std::string& linker, const std::string& folder,
                                 const std::vector<std::string>& inputs, const std::string& output);

}  // namespace hone::codegen
