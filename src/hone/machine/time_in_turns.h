// machine/time_in_turns.h - how long compiled models take side by side, in this process.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::machine {

// See ModelTimer::time_in_turns().
[[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turns(
    const std::vector<std::string>& libraries, int threads, double seconds);

}  // namespace hone::machine
