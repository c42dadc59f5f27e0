#include "hone/trial/accuracy.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace hone::trial {
namespace {

// Names of steps, with which the names of their algorithms begin.
constexpr std::string_view kRoundingAlgorithms[] = {"winograd", "strassen"};

}  // namespace

std::optional<Accuracy> parse_accuracy(std::string_view name) {
  for (const Accuracy accuracy : {Accuracy::kStrict, Accuracy::kDefault, Accuracy::kFast}) {
    if (name == accuracy_name(accuracy)) return accuracy;
  }
  return std::nullopt;
}

std::string_view accuracy_name(Accuracy accuracy) {
  constexpr std::string_view kNames[] = {"strict", "default", "fast"};
  return kNames[static_cast<size_t>(accuracy)];
}

bool rounds_more(std::string_view algorithm) {
  return std::any_of(std::begin(kRoundingAlgorithms), std::end(kRoundingAlgorithms),
                     [&](std::string_view prefix) { return algorithm.starts_with(prefix); });
}

bool is_narrow(std::string_view algorithm) { return algorithm.ends_with("_bf16"); }

Accuracy accuracy_of_algorithm(std::string_view algorithm) {
  if (is_narrow(algorithm) || algorithm.ends_with("_tf32")) return Accuracy::kFast;
  return rounds_more(algorithm) ? Accuracy::kDefault : Accuracy::kStrict;
}

// No name in a schedule has a parenthesis, so each of these begins or ends a step.
Accuracy accuracy_of(std::string_view steps) {
  for (const std::string_view fewer_bits : {"narrow(", ", tf32)"}) {
    if (steps.find(fewer_bits) != std::string_view::npos) return Accuracy::kFast;
  }
  for (const std::string_view rounding : kRoundingAlgorithms) {
    if (steps.find(std::string(rounding) + "(") != std::string_view::npos)
      return Accuracy::kDefault;
  }
  return Accuracy::kStrict;
}

}  // namespace hone::trial
