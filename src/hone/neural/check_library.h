// check_library.h - whether a compiled net says what the net says: the compiler serves its own
// search, so a bug there would misguide it without a word.
#pragma once

#include <string>

#include "hone/base/status.h"
#include "hone/cost/net/net.h"

namespace hone {

// Runs the library on a batch of random candidates, two of which the net computes plainly, too. An
// error if an output is missing or differs by more than 1e-4 of its largest value in the batch.
[[nodiscard]] Status check_library(const std::string& library, const cost::net::Net& net);

}  // namespace hone
