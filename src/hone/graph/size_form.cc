#include "hone/graph/size_form.h"

#include <algorithm>

namespace hone::graph {

int64_t value_of(const SizeForm& form, const std::vector<int64_t>& symbols) {
  int64_t sum = form.offset;
  for (const SizeTerm& term : form.terms) {
    int64_t product = term.factor;
    for (const int symbol : term.symbols) product *= symbols[static_cast<size_t>(symbol)];
    sum += product;
  }
  const int64_t quotient = sum / form.divisor - (sum % form.divisor < 0 ? 1 : 0);
  return std::clamp(quotient, form.least, form.most);
}

}  // namespace hone::graph
