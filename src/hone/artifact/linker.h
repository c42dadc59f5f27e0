// artifact/linker.h - runs the system's linker on the objects in one folder.
#pragma once

#include <string>
#include <vector>

#include "hone/artifact/elf_object.h"
#include "hone/base/status.h"

namespace hone::artifact {

// Returns the program's path. If `wanted` is empty, it is the first linker for the machine in PATH:
// of ld, ld.lld, ld.lld-22 for that of this process, else of ld.lld-22, ld.lld and binutils' ld. If
// there is none, it is libexec/hone/ld.lld of the installation.
[[nodiscard]] Result<std::string> find_linker(const std::string& wanted, Machine machine);

// Links a shared library against `libraries`, files in the folder; if there are none, against this
// process's own libc and libm. The linker runs in `folder`, so that no path gets into the output;
// `inputs` and `output` are names there. Only the symbols of `exports` are visible.
[[nodiscard]] Status link_shared_library(const std::string& linker, const std::string& folder,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<std::string>& libraries,
                                         const std::vector<std::string>& exports,
                                         const std::string& output);

// Links the inputs into one relocatable object. Symbols that they do not define stay undefined.
[[nodiscard]] Status link_object(const std::string& linker, const std::string& folder,
                                 const std::vector<std::string>& inputs, const std::string& output);

}  // namespace hone::artifact
