// version.h - the version of Hone.
#pragma once

#include <string_view>

#include "hone/export.h"

namespace hone {

// Returns the version of this library, such as "0.1.0".
[[nodiscard]] HONE_API std::string_view version();
// Returns the version of the C interface of the libraries that it writes (HONE_ABI_VERSION in their
// header). Model::load() takes those of this version only.
[[nodiscard]] HONE_API int abi_version();

}  // namespace hone
