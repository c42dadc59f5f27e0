// null_machine.h - a machine that measures nothing, for who tests or times what stands around the
// measuring: a tuner, a store, a fleet.
//
//   options.advanced.hooks = hone::null_machine(0.25);
#pragma once

#include "hone/export.h"

namespace hone {

struct JobHooks;

// Returns hooks for AdvancedOptions::hooks and DatasetOptions::hooks, which live as long as the
// program. A job with them compiles its candidates but does not run them: each takes so many
// seconds of waiting, and its time follows from the size of its machine code. Outputs are not
// compared, and whole models not timed. Records carry this machine's key as if it had measured:
// keep them in a database of their own.
[[nodiscard]] HONE_API const JobHooks* null_machine(double seconds_per_candidate);

}  // namespace hone
