// check_library.h - checks that a compiled net computes what the net computes. The compiler also
// compiles the nets that guide its own search, so a bug in it would silently misguide the search.
#pragma once

#include <string>

#include "hone/base/status.h"
#include "hone/cost/net/net.h"

namespace hone {

// Runs the library on a batch of random candidates and evaluates the net itself on two of them
// (cost/net/evaluate.h). Returns an error if an output is missing or differs by more than 1e-4 of
// its largest value in the batch.
[[nodiscard]] Status check_library(const std::string& library, const cost::net::Net& net);

}  // namespace hone
