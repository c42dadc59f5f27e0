// measure/patient_runner.h - a runner that has a batch of several threads wait until each of them
// has a core (core_state.h).
#pragma once

#include <memory>

#include "hone/measure/core_state.h"
#include "hone/measure/runner.h"

namespace hone::measure {

// `watch`: of as many threads as jobs have at most; it must outlive the runner, and knows
// afterwards how long was waited. Jobs of one thread never wait. `deadline`: on its clock; no batch
// waits longer.
[[nodiscard]] std::unique_ptr<Runner> make_patient_runner(std::unique_ptr<Runner> inner,
                                                          CoreWatch& watch, double deadline);

}  // namespace hone::measure
