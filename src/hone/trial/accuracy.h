// trial/accuracy.h - how much a schedule may round, and how much a given one does, by the name of
// its algorithm or by the text of its steps. Later versions may write other steps; the names that
// are known here are valid for records of every version.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::trial {

// The algorithms that a task may use, by how much they round (docs/user/tuning.md has figures).
enum class Accuracy : uint8_t {
  kStrict,  // products are summed as the model has them
  // Also Winograd's convolutions and Strassen's products, with errors of at most 2e-5 of the
  // largest result as measured.
  kDefault,
  // Also constants in 16 bits (schedule::Narrow), with errors of 2^-9 of each, and on GPUs factors
  // in tf32 (schedule::Tensorize), with errors of 2^-11 of each.
  kFast,
};
inline constexpr int kNumAccuracies = 3;
// Parses "strict", "default" or "fast".
[[nodiscard]] std::optional<Accuracy> parse_accuracy(std::string_view name);
[[nodiscard]] std::string_view accuracy_name(Accuracy accuracy);

// Returns whether an algorithm (schedule::algorithm_of) rounds more than sums of products do,
// because its terms cancel.
[[nodiscard]] bool rounds_more(std::string_view algorithm);
// Returns whether the algorithm stores constants in fewer bits.
[[nodiscard]] bool is_narrow(std::string_view algorithm);

// Returns the strictest --accuracy that allows an algorithm.
[[nodiscard]] Accuracy accuracy_of_algorithm(std::string_view algorithm);
// Returns the strictest --accuracy that allows a schedule. Its steps are given as text and may be
// of another version.
[[nodiscard]] Accuracy accuracy_of(std::string_view steps);

}  // namespace hone::trial
