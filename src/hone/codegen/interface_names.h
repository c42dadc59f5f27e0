// codegen/interface_names.h - the names of an artifact's C interface: those of
// runtime/hone_model.h, with another prefix if the caller wants one.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::codegen {

inline constexpr const char* kOwnPrefix = "hone_model";         // the runtime's own
inline constexpr const char* kOwnVersion = "hone_abi_version";  // the function without that prefix

// The functions, in the header's order.
[[nodiscard]] std::vector<std::string> interface_functions();
// What a function of the list above is called with this prefix.
[[nodiscard]] std::string exported_name(const std::string& function, const std::string& prefix);
// The text of runtime/hone_model.h for this prefix, without its first comment.
[[nodiscard]] std::string interface_text(const std::string& prefix);

}  // namespace hone::codegen
