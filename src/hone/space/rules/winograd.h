// space/rules/winograd.h - which convolutions rules try Winograd's algorithm on (internal to
// space).
#pragma once

#include <string>
#include <vector>

#include "hone/schedule/winograd.h"

namespace hone::space {

// Returns the dimensions that a convolution slides along if tiles of `outputs` results are worth
// trying in all of them; empty if they are not, or if the stage is no such convolution.
[[nodiscard]] std::vector<schedule::WinogradDim> winograd_tiles(const schedule::State& state,
                                                                const std::string& conv,
                                                                int64_t outputs);

}  // namespace hone::space
