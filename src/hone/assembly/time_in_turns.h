// time_in_turns.h - how long compiled models take side by side.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone {

inline constexpr int kLeastRounds = 4;  // however few seconds there are; the first one is untimed
// Seconds of the runs of each library, in turns, so that what disturbs one disturbs the others,
// too: in each round every one of them runs once, on inputs of zeros.
[[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turns(
    const std::vector<std::string>& libraries, int threads, double seconds);

}  // namespace hone
