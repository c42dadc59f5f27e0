// search/policy_state.h - keeps what a policy learned in a file, from run to run. The file is text:
// a version, the strategy, a hash of what follows, and the policy's own lines. It is replaced as a
// whole or not at all.
#pragma once

#include <string>

#include "hone/search/policy.h"

namespace hone::search {

// Load and save what a policy learned. Loading does nothing if there is no file, but the file's
// folder must exist, so that it can be saved. An error names the file and leaves the policy
// unchanged. A policy that learns nothing is an error, too.
[[nodiscard]] Status load_policy_state(const std::string& path, Policy& policy);
[[nodiscard]] Status save_policy_state(const std::string& path, const Policy& policy);

}  // namespace hone::search
