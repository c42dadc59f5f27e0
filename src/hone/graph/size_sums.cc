#include "hone/graph/size_sums.h"

#include <algorithm>

namespace hone::graph {
namespace {

void add_term(SizeForm& sum, const SizeTerm& term) {
  for (SizeTerm& own : sum.terms) {
    if (own.symbols != term.symbols) continue;
    own.factor += term.factor;
    return;
  }
  sum.terms.push_back(term);
}

SizeTerm product(const SizeTerm& a, const SizeTerm& b) {
  SizeTerm made = a;
  made.factor *= b.factor;
  made.symbols.insert(made.symbols.end(), b.symbols.begin(), b.symbols.end());
  std::sort(made.symbols.begin(), made.symbols.end());
  return made;
}

// Both are sums of products, in which nothing is subtracted.
SizeForm product(const SizeForm& a, const SizeForm& b) {
  SizeForm made{.offset = a.offset * b.offset};
  for (const SizeTerm& x : a.terms) {
    for (const SizeTerm& y : b.terms) add_term(made, product(x, y));
    if (b.offset != 0) add_term(made, {x.factor * b.offset, x.symbols});
  }
  for (const SizeTerm& y : b.terms) {
    if (a.offset != 0) add_term(made, {y.factor * a.offset, y.symbols});
  }
  return made;
}

// The value of a part as a sum of products: itself if it is one, else the form as a factor.
std::optional<SizeForm> as_sum(const Varying& varying, const SizePart& part) {
  if (part.form == kNoForm) return SizeForm{.offset = part.most};
  const SizeForm& form = varying.forms[static_cast<size_t>(part.form)];
  if (form.divisor == 1 && form.offset >= 0 && !form.is_bounded()) return form;
  if (!is_of_symbols(form)) return std::nullopt;
  return SizeForm{.terms = {{1, {factor_of_form(part.form)}}}};
}

int64_t quotient(int64_t value, int64_t divisor) {
  return value_of({.offset = value, .divisor = divisor}, {});
}

// Returns what a bound of a form becomes by an offset and a divisor. One that is none stays so.
int64_t bound_of(int64_t bound, int64_t offset, int64_t divisor) {
  const SizeForm none;
  return bound == none.least || bound == none.most ? bound : quotient(bound + offset, divisor);
}

}  // namespace

int64_t value_of(const Varying& varying, const SizeForm& form,
                 const std::vector<int64_t>& symbols) {
  if (is_of_symbols(form)) return value_of(form, symbols);
  int64_t sum = form.offset;
  for (const SizeTerm& term : form.terms) {
    int64_t product = term.factor;
    for (const int factor : term.symbols) {
      product *= factor >= 0 ? symbols[static_cast<size_t>(factor)]
                             : value_of(varying.forms[static_cast<size_t>(form_of_factor(factor))],
                                        symbols);
    }
    sum += product;
  }
  return std::clamp(quotient(sum, form.divisor), form.least, form.most);
}

bool is_of_symbols(const SizeForm& form) {
  return std::all_of(form.terms.begin(), form.terms.end(), [](const SizeTerm& term) {
    return std::all_of(term.symbols.begin(), term.symbols.end(),
                       [](int factor) { return factor >= 0; });
  });
}

std::optional<SizeForm> sum_of_products(const Varying& varying,
                                        const std::vector<DimParts>& extents) {
  SizeForm sum;
  for (const DimParts& parts : extents) {
    SizeForm extent{.offset = 1};
    for (const SizePart& part : parts) {
      const auto factor = as_sum(varying, part);
      if (!factor) return std::nullopt;
      extent = product(extent, *factor);
    }
    sum.offset += extent.offset;
    for (const SizeTerm& term : extent.terms) add_term(sum, term);
  }
  return sum;
}

SizeForm bounded(SizeForm form, int64_t least, int64_t most) {
  form.least = std::clamp(form.least, least, most);
  form.most = std::clamp(form.most, least, most);
  return form;
}

std::optional<SizeForm> quotient_of(const Varying& varying, const SizeForm& form, int64_t offset,
                                    int64_t divisor) {
  if (is_of_symbols(form)) {
    // floor((floor(x / d) + offset) / divisor) = floor((x + offset * d) / (d * divisor))
    SizeForm made = form;
    made.offset += offset * form.divisor;
    made.divisor *= divisor;
    if (form.is_bounded()) {
      made.least = bound_of(form.least, offset, divisor);
      made.most = bound_of(form.most, offset, divisor);
    }
    return made;
  }
  if (divisor == 1 && form.divisor == 1 && !form.is_bounded()) {
    SizeForm made = form;
    made.offset += offset;
    return made;
  }
  const bool is_multiple = form.divisor == 1 && form.terms.size() == 1 &&
                           form.terms[0].symbols.size() == 1 && !form.is_bounded();
  if (!is_multiple || divisor % form.terms[0].factor != 0) return std::nullopt;
  // floor((m * q + offset) / divisor) = floor((q + floor(offset / m)) / (divisor / m))
  const int64_t m = form.terms[0].factor;
  const int factor = form_of_factor(form.terms[0].symbols[0]);
  return quotient_of(varying, varying.forms[static_cast<size_t>(factor)],
                     quotient(form.offset + offset, m), divisor / m);
}

}  // namespace hone::graph
