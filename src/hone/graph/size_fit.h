// graph/size_fit.h - finds the form (graph/size_form.h) that numbers have which were seen at some
// values of the symbols.
#pragma once

#include <optional>

#include "hone/graph/size_form.h"

namespace hone::graph {

// A number that was seen at the values of the symbols.
struct SizeSample {
  const std::vector<int64_t>* symbols;
  int64_t number;
};

// The largest divisor of a form that is found.
inline constexpr int64_t kMostFittedDivisor = 128;

// Returns the form that gives these numbers, which are those at the largest sizes and at others at
// which each symbol differs; nullopt if no form does, or several. A number that does not vary has a
// form without terms.
[[nodiscard]] std::optional<SizeForm> fit_form(const std::vector<SizeSample>& samples);
[[nodiscard]] bool same_form(const SizeForm& a, const SizeForm& b);

}  // namespace hone::graph
