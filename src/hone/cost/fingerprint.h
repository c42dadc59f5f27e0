// cost/fingerprint.h - a short summary of the features that this program computes of a few fixed
// schedules. The file of a trained model has it, so a change of features or of the analytic measure
// without a new version is reported, instead of silently using the model on other inputs. A feature
// that is 0 for each of the schedules may change undetected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/cost/candidate_features.h"

namespace hone::cost {

// A fingerprint has parts, one per input that is read as a whole: an input of nets by its name
// (inputs/model_inputs.h), or what the trees of "gbdt" or "gpu" read, under that name.
[[nodiscard]] std::vector<std::string> fingerprint_parts(FeatureSet features);  // parts of trees
// Returns the parts of a net with these inputs, which always include the analytic measure's time.
[[nodiscard]] std::vector<std::string> fingerprint_parts(const std::vector<std::string>& inputs);
// Returns the line of a file's header that says how many features there are and of which version.
[[nodiscard]] std::string features_line(FeatureSet features);

// Returns what this program computes for a part: a number for each schedule and machine. It is
// computed once per process, when it is first needed.
[[nodiscard]] std::string fingerprint(std::string_view part);
// Checks that `found`, the fingerprint in the file, equals that of this program except for
// rounding. An error names the file, the first number that differs and the command that trains such
// files.
[[nodiscard]] Status check_fingerprint(std::string_view part, std::string_view found,
                                       std::string_view file,
                                       std::string_view command = "hone train");

}  // namespace hone::cost
