// search/policy_state.h - keeps what a policy learned in a file, from run to run. The file is text:
// a version, a hash of what follows, the strategy, what it was trained for (the instruction set,
// the versions of the space and of the features, and the features' fingerprint), and the policy's
// own lines. It is replaced as a whole or not at all.
#pragma once

#include <string>

#include "hone/search/policy.h"

namespace hone::search {

// Load and save what a policy learned of schedules for `target`. Loading does nothing if there is
// no file, but the file's folder must exist, so that it can be saved. An error names the file and
// leaves the policy unchanged. A state of another instruction set, space or features is an error,
// and so is a policy that learns nothing.
[[nodiscard]] Status load_policy_state(const std::string& path, const target::Target& target,
                                       Policy& policy);
[[nodiscard]] Status save_policy_state(const std::string& path, const target::Target& target,
                                       const Policy& policy);

}  // namespace hone::search
