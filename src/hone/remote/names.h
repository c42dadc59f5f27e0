// remote/names.h - names that tell one run of a program, or of a machine, from another one.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace hone::remote {

// Returns 32 hexadecimal digits that nobody can guess.
[[nodiscard]] Result<std::string> random_name();
// Returns what the system calls the time since it was started; "" if it does not say.
[[nodiscard]] std::string boot_name();

}  // namespace hone::remote
