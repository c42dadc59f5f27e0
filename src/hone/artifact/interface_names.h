// artifact/interface_names.h - the names of an artifact's C interface, which are those of
// runtime/hone_model.h with the caller's prefix.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::artifact {

inline constexpr const char* kOwnPrefix = "hone_model";  // prefix of the runtime itself
// The one function without that prefix.
inline constexpr const char* kOwnVersion = "hone_abi_version";

// Returns the functions in the header's order.
[[nodiscard]] std::vector<std::string> interface_functions();
// Returns the name of such a function with this prefix.
[[nodiscard]] std::string exported_name(const std::string& function, const std::string& prefix);
// Returns the text of runtime/hone_model.h for this prefix, without its first comment.
[[nodiscard]] std::string interface_text(const std::string& prefix);

}  // namespace hone::artifact
