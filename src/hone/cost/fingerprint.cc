#include "hone/cost/fingerprint.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/base/options.h"
#include "hone/cost/fingerprint_queries.h"
#include "hone/cost/gpu_features.h"
#include "hone/cost/inputs/model_inputs.h"

namespace hone::cost {
namespace {

// The tolerance relative to the sum of the absolute values that a number adds up. Another compiler
// or mathematical library rounds the last bit of a float differently, which is 6e-8 of it.
constexpr double kTolerance = 1e-5;
constexpr double kLargest = 1e30;
constexpr std::string_view kTrees = "gbdt", kGpuTrees = "gpu";

struct Summary {
  double value = 0;
  double size = 0;  // sum of absolute values
};
using Part = std::vector<Summary>;  // by query

// A sum with weights from 1 to 2, no two alike: numbers that change places change it.
Summary summarise(std::span<const float> row) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  Summary summary;
  for (size_t i = 0; i < row.size(); ++i) {
    const double steps = static_cast<double>(i) * kGoldenRatio;
    const double term = (1 + steps - std::floor(steps)) * row[i];
    summary.value += term;
    summary.size += std::abs(term);
  }
  return summary;
}

std::array<Part, kNumInputs> compute_inputs() {
  std::array<Part, kNumInputs> parts;
  for (const auto& [name, query] : fingerprint_queries()) {
    const Result<ModelInputs> inputs = model_inputs(query);
    HONE_ASSERT(inputs.ok(), inputs.status().message().c_str());
    for (size_t i = 0; i < kNumInputs; ++i) parts[i].push_back(summarise(inputs->values[i]));
  }
  return parts;
}

const std::vector<FingerprintQuery>& queries_of(std::string_view part) {
  return part == kGpuTrees ? gpu_fingerprint_queries() : fingerprint_queries();
}

Part compute_trees(FeatureSet set, std::string_view name) {
  Part part;
  for (const FingerprintQuery& one : queries_of(name)) {
    CandidateFeatures features = candidate_features(one.query, set);
    features.row.push_back(static_cast<float>(std::log(features.base_seconds)));
    part.push_back(summarise(features.row));
  }
  return part;
}

const Part& part_of(std::string_view name) {
  if (name == kTrees) {
    static const Part kPart = compute_trees(FeatureSet::kStatements, kTrees);
    return kPart;
  }
  if (name == kGpuTrees) {
    static const Part kPart = compute_trees(FeatureSet::kGpu, kGpuTrees);
    return kPart;
  }
  const std::optional<Input> input = find_input(name);
  HONE_ASSERT(input.has_value(), "a part of a fingerprint that there is not");
  static const std::array<Part, kNumInputs> kParts = compute_inputs();
  return kParts[static_cast<size_t>(*input)];
}

std::string name_of(Input input) { return input_shapes()[static_cast<size_t>(input)].name; }

// At blanks; nullopt if it is no list of numbers.
std::optional<std::vector<double>> parse_numbers(std::string_view text) {
  std::vector<double> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const Result<double> number = parse_real(text.substr(begin, end - begin), -kLargest, kLargest);
    if (!number.ok()) return std::nullopt;
    numbers.push_back(*number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

std::vector<std::string> fingerprint_parts(FeatureSet features) {
  if (features == FeatureSet::kStatements) return {std::string(kTrees)};
  if (features == FeatureSet::kGpu) return {std::string(kGpuTrees)};
  std::vector<std::string> parts = {name_of(Input::kAnalytic), name_of(Input::kMeasure)};
  if (features == FeatureSet::kCombined) parts.push_back(name_of(Input::kDecisions));
  return parts;
}

std::vector<std::string> fingerprint_parts(const std::vector<std::string>& inputs) {
  std::vector<std::string> parts = {name_of(Input::kAnalytic)};
  for (const std::string& input : inputs) {
    // Each file has heads of its own, so they are no part of the fingerprint.
    if (input != parts[0] && input != name_of(Input::kHead) && find_input(input).has_value())
      parts.push_back(input);
  }
  return parts;
}

std::string fingerprint(std::string_view part) {
  std::string text;
  for (const Summary& summary : part_of(part))
    text += fmt::format("{}{:.9g}", text.empty() ? "" : " ", summary.value);
  return text;
}

std::string features_line(FeatureSet features) {
  return fmt::format("features {} of version {}", candidate_feature_names(features).size(),
                     features == FeatureSet::kGpu ? kGpuFeatureVersion : kCandidateFeatureVersion);
}

Status check_fingerprint(std::string_view part, std::string_view found, std::string_view file,
                         std::string_view command) {
  const Part& expected = part_of(part);
  const std::optional<std::vector<double>> numbers = parse_numbers(found);
  if (!numbers || numbers->size() != expected.size())
    return invalid("{}: its fingerprint of {} is '{}', expected {} numbers", file, part, found,
                   expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [value, size] = expected[i];
    if (std::abs((*numbers)[i] - value) <= kTolerance * std::max(size, 1.0)) continue;
    return invalid(
        "{}: trained with other features or another analytic measure than this program has ({} of "
        "{}: found {:.9g}, expected {:.9g}): train it anew ({})",
        file, part, queries_of(part)[i].name, (*numbers)[i], value, command);
  }
  return ok_status();
}

}  // namespace hone::cost
