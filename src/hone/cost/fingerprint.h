// cost/fingerprint.h - what this program computes of a few schedules that never change, in few
// numbers. A file of a trained model carries them: whoever changed features or the analytic measure
// and forgot their version is told so, instead of trees and nets that know another measure. What is
// 0 for each of the schedules (some of the features) may change unseen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/cost/candidate_features.h"

namespace hone::cost {

// A fingerprint has parts, each of what is read together: an input of nets by its name
// (inputs/model_inputs.h), or what the trees of "gbdt" read, called so.
[[nodiscard]] std::vector<std::string> fingerprint_parts(FeatureSet features);  // of trees
// Of a net with these inputs; the analytic measure's time is always one of them.
[[nodiscard]] std::vector<std::string> fingerprint_parts(const std::vector<std::string>& inputs);

// What this program computes of a part: a number for each schedule and machine. It is computed once
// in a process, when it is first asked for.
[[nodiscard]] std::string fingerprint(std::string_view part);
// Whether `found`, what the file has of the part, is that, but for rounding. An error names the
// file and the first number that differs.
[[nodiscard]] Status check_fingerprint(std::string_view part, std::string_view found,
                                       std::string_view file);

}  // namespace hone::cost
