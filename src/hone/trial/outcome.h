// trial/outcome.h - how the run of a candidate ended. The names are stored in the database, so they
// are never reused or changed.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace hone::trial {

enum class Outcome : uint8_t {
  kOk = 0,
  kCompile = 1,      // no machine code could be made
  kLoad = 2,         // the code could not be loaded, or there was not enough memory
  kCrash = 3,        // the worker process crashed
  kTimeout = 4,      // the run took too long
  kWrongAnswer = 5,  // the run's outputs are wrong
};
inline constexpr std::string_view kOutcomeNames[] = {"ok",    "compile", "load",
                                                     "crash", "timeout", "wrong answer"};

[[nodiscard]] inline std::string_view outcome_name(Outcome outcome) {
  return kOutcomeNames[static_cast<size_t>(outcome)];
}
[[nodiscard]] inline std::optional<Outcome> parse_outcome(std::string_view name) {
  for (size_t i = 0; i < std::size(kOutcomeNames); ++i) {
    if (kOutcomeNames[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace hone::trial
