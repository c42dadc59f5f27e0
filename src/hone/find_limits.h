// find_limits.h - the limits of this machine for a long run of tune(): they end searches that have
// nothing to gain.
#pragma once

#include <functional>

#include "hone/tune_options.h"

namespace hone {

// For budgets of kLimitsBudget seconds and more, unless the database knows them: measures them and
// stores them, in 4 to 20 s, after a call of `before`. On a machine that has other work nothing is
// stored, as too low a limit ends searches too early. A failure is no error: without them
// descriptions have to do.
inline constexpr double kLimitsBudget = 300;
void find_limits(const TuneOptions& options, const std::function<void()>& before);

}  // namespace hone
