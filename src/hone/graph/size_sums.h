// graph/size_sums.h - forms that are built from others: sums of products of forms, which have too
// many terms to be found from numbers (graph/size_fit.h), quotients of a form, their multiples, and
// forms with bounds.
//
// A form that is a factor of another one comes before it, follows from symbols alone, and is
// nowhere less than 0: (height / 8) * (width / 8) + (height / 16) * (width / 16).
#pragma once

#include <optional>

#include "hone/graph/size_fit.h"

namespace hone::graph {

// Returns the factor of a term (SizeTerm::symbols) that a form is, and back.
[[nodiscard]] constexpr int factor_of_form(int form) { return -1 - form; }
[[nodiscard]] constexpr int form_of_factor(int factor) { return -1 - factor; }

// Returns the value of a form that may have those of `varying` as factors.
[[nodiscard]] int64_t value_of(const Varying& varying, const SizeForm& form,
                               const std::vector<int64_t>& symbols);
// Returns whether a form follows from symbols alone.
[[nodiscard]] bool is_of_symbols(const SizeForm& form);

// Returns the sum of extents, each of which is a product of parts; nullopt if a form that is no sum
// of products has others as factors.
[[nodiscard]] std::optional<SizeForm> sum_of_products(const Varying& varying,
                                                      const std::vector<DimParts>& extents);

// Returns the form, but not less than `least` nor more than `most`.
[[nodiscard]] SizeForm bounded(SizeForm form, int64_t least, int64_t most);

// Returns (form + offset) / divisor rounded down, as a form of symbols alone if the form is one, or
// a multiple of one whose factor divides the divisor, with an offset. Another form without bounds
// and divisor gets the offset if the divisor is 1; else the result is nullopt.
[[nodiscard]] std::optional<SizeForm> quotient_of(const Varying& varying, const SizeForm& form,
                                                  int64_t offset, int64_t divisor);

}  // namespace hone::graph
