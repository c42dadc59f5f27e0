// find_limits.h - measures the limits of the machine for a long run of tune(), which ends searches
// that have nothing to gain.
#pragma once

#include <functional>

#include "hone/machine/machine.h"
#include "hone/options.h"

namespace hone {

// Measures the machine's limits and stores them, unless the database has them already, for budgets
// of at least kLimitsBudget seconds and the device "host" only. It takes 4 to 20 s and calls
// `before` first. If the machine has other work, nothing is stored, because too low a limit ends
// searches too early. A failure is no error: the search then uses the limits in the description of
// the machine.
inline constexpr double kLimitsBudget = 300;
void find_limits(const machine::Machine& machine, const TuneOptions& options,
                 const std::function<void()>& before);

}  // namespace hone
