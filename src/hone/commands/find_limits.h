// find_limits.h - the limits of the machine for a long run of tune(): they end searches that have
// nothing to gain.
#pragma once

#include <functional>

#include "hone/commands/tune_options.h"
#include "hone/machine/machine.h"

namespace hone {

// For budgets of kLimitsBudget seconds and more of the machine as a whole, unless the database
// knows them: measures them and stores them, in 4 to 20 s, after a call of `before`. On a machine
// that has other work nothing is stored, as too low a limit ends searches too early. A failure is
// no error: without them descriptions have to do.
inline constexpr double kLimitsBudget = 300;
void find_limits(const machine::Machine& machine, const TuneOptions& options,
                 const std::function<void()>& before);

}  // namespace hone
