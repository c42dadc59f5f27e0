// trial/accuracy.h - how much a schedule may round, and how much one does, by the name of its
// algorithm or by its steps as text. A later version may write other steps; what is known here of
// their names holds for the records of every version.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::trial {

// Which algorithms a task may use, by how much they round (docs/user/tuning.md has figures).
enum class Accuracy : uint8_t {
  kStrict,   // every product is summed as it is written
  kDefault,  // Winograd's convolutions and Strassen's products, too: 2e-5 of the largest result at
             // most where measured
  kFast,     // and constants of 16 bits (schedule::Narrow): 2^-9 of each
};
[[nodiscard]] std::optional<Accuracy> parse_accuracy(std::string_view name);  // "strict", ...
[[nodiscard]] std::string_view accuracy_name(Accuracy accuracy);

// Whether an algorithm (schedule::algorithm_of) rounds more than sums of products do: what it adds
// up lies apart.
[[nodiscard]] bool rounds_more(std::string_view algorithm);
// Whether it has constants of fewer bits.
[[nodiscard]] bool is_narrow(std::string_view algorithm);

// The strictest --accuracy that allows an algorithm.
[[nodiscard]] Accuracy accuracy_of_algorithm(std::string_view algorithm);
// The strictest --accuracy that allows a schedule, from its steps as text, be they of this version
// of the schedules or of another one.
[[nodiscard]] Accuracy accuracy_of(std::string_view steps);

}  // namespace hone::trial
