// The forms of the extents that values have at all sizes at which the model was looked at.
#include <algorithm>

#include "hone/graph/size_follower.h"
#include "hone/graph/size_sums.h"
#include "hone/graph/size_values.h"

namespace hone::graph {

bool SizeFollower::gives(const SizeForm& form, const std::vector<SizeSample>& samples) const {
  return std::all_of(samples.begin(), samples.end(), [&](const SizeSample& sample) {
    return value_of(graph_.varying, form, *sample.symbols) == sample.number;
  });
}

std::optional<int> SizeFollower::fitted_form(const std::vector<SizeSample>& samples) {
  for (size_t i = 0; i < graph_.varying.forms.size() && samples.size() > probes_.size(); ++i) {
    // One with bounds may give the numbers of the sizes at which the model was looked at by chance.
    if (graph_.varying.forms[i].is_bounded()) continue;
    if (gives(graph_.varying.forms[i], samples)) return static_cast<int>(i);
  }
  const auto form = fit_form(samples);
  return form ? index_of(*form) : std::nullopt;
}

std::optional<int> SizeFollower::form_of(const std::vector<SizeSample>& samples) {
  const auto form = fitted_form(samples);
  return form ? form : multiple_of_known(samples);
}

// Returns whether all numbers of a form are such as a plan takes.
bool SizeFollower::is_small(const SizeForm& form) const {
  const auto exceeds = [](int64_t number) { return number > kMostNumber || number < -kMostNumber; };
  if (exceeds(form.offset) || form.divisor > kMostDivisor) return false;
  return std::none_of(form.terms.begin(), form.terms.end(), [&](const SizeTerm& term) {
    int64_t product = term.factor;
    for (const int factor : term.symbols) {
      const SizeForm alone{.terms = {{1, {factor}}}};
      const int64_t most = std::max<int64_t>(value_of(graph_.varying, alone, most_), 1);
      if (__builtin_mul_overflow(product, most, &product) || exceeds(product)) return true;
    }
    return exceeds(product);
  });
}

std::optional<int> SizeFollower::index_of(const SizeForm& form) {
  if (form.terms.empty()) return kNoForm;
  if (!is_small(form)) return std::nullopt;
  std::vector<SizeForm>& forms = graph_.varying.forms;
  for (size_t i = 0; i < forms.size(); ++i) {
    if (same_form(forms[i], form)) return static_cast<int>(i);
  }
  full_ = forms.size() >= static_cast<size_t>(kMaxForms);
  if (full_) return std::nullopt;
  forms.push_back(form);
  return static_cast<int>(forms.size() - 1);
}

std::optional<std::vector<SizeSample>> SizeFollower::samples_of(ValueId id, size_t dim) const {
  const Shape& shape = graph_.value(id).shape;
  std::vector<SizeSample> samples = {{&most_, shape[dim]}};
  for (const SizeProbe& probe : probes_) {
    const Value* twin = probe.twin(origin(id));
    if (twin == nullptr) continue;
    if (twin->shape.size() != shape.size()) return std::nullopt;
    samples.push_back({&probe.symbols, twin->shape[dim]});
  }
  return samples;
}

std::optional<SizePart> SizeFollower::seen_part(ValueId id, size_t dim) {
  const auto samples = samples_of(id, dim);
  const auto form = samples ? form_of(*samples) : std::nullopt;
  if (!form) return std::nullopt;
  return SizePart{*form, graph_.value(id).shape[dim]};
}

std::optional<SizePart> SizeFollower::divided_part(ValueId id, size_t dim, const DimParts& from,
                                                   const std::vector<int64_t>& offsets,
                                                   int64_t divisor) {
  const bool varies = from.size() == 1 && from[0].form != kNoForm;
  const SizeForm form = varies ? varying_form(from[0].form) : SizeForm();
  // A form that is found from numbers has a small divisor: another one may give them by chance.
  const auto quotient = quotient_of(graph_.varying, form, 0, divisor);
  const int64_t whole = quotient ? quotient->divisor : form.divisor * divisor;
  const bool is_fitted = whole <= kMostFittedDivisor && !form.is_bounded();
  const auto seen = is_fitted || !varies ? seen_part(id, dim) : std::nullopt;
  const auto samples = samples_of(id, dim);
  if (seen || !varies || !samples) return seen;
  const auto index = quotient_form(form, offsets, divisor, *samples);
  return index ? std::optional(SizePart{*index, graph_.value(id).shape[dim]}) : std::nullopt;
}

std::optional<int> SizeFollower::quotient_form(const SizeForm& form,
                                               const std::vector<int64_t>& offsets, int64_t divisor,
                                               const std::vector<SizeSample>& samples) {
  for (const int64_t offset : offsets) {
    const auto quotient = quotient_of(graph_.varying, form, offset, divisor);
    if (!quotient || quotient->divisor > kMostDivisor) return std::nullopt;
    if (gives(*quotient, samples)) return index_of(*quotient);
  }
  return std::nullopt;
}

int64_t SizeFollower::extent_at(const DimParts& parts, const std::vector<int64_t>& symbols) const {
  int64_t extent = 1;
  for (const SizePart& part : parts)
    extent *= part.form == kNoForm ? part.most
                                   : value_of(graph_.varying, varying_form(part.form), symbols);
  return extent;
}

int64_t SizeFollower::sum_at(const std::vector<DimParts>& extents,
                             const std::vector<int64_t>& symbols) const {
  int64_t sum = 0;
  for (const DimParts& parts : extents) sum += extent_at(parts, symbols);
  return sum;
}

bool SizeFollower::at_all_sizes(
    const std::function<bool(const std::vector<int64_t>& symbols)>& holds) const {
  constexpr int64_t kMostValues = 4096;  // of a symbol, from the smallest on
  for (const std::vector<int64_t>& others : {most_, smallest_symbols(graph_.varying)}) {
    for (size_t s = 0; s < most_.size(); ++s) {
      const SizeSymbol& symbol = graph_.varying.symbols[s];
      std::vector<int64_t> symbols = others;
      const int64_t last = std::min(symbol.max, symbol.min + kMostValues);
      for (symbols[s] = symbol.min; symbols[s] <= last; ++symbols[s]) {
        if (!holds(symbols)) return false;
      }
    }
  }
  return true;
}

bool SizeFollower::have_as_many(const ShapeParts& a, const ShapeParts& b) const {
  const auto elements = [&](const ShapeParts& parts, const std::vector<int64_t>& symbols) {
    int64_t product = 1;
    for (const DimParts& dim : parts) product *= extent_at(dim, symbols);
    return product;
  };
  return at_all_sizes([&](const std::vector<int64_t>& symbols) {
    return elements(a, symbols) == elements(b, symbols);
  });
}

bool SizeFollower::is_sum(int form, const std::vector<DimParts>& extents) const {
  const int64_t most = sum_at(extents, most_);
  return at_all_sizes([&](const std::vector<int64_t>& symbols) {
    return sum_at(extents, symbols) ==
           (form == kNoForm ? most : value_of(graph_.varying, varying_form(form), symbols));
  });
}

std::optional<int> SizeFollower::sum_form(const std::vector<DimParts>& extents) {
  std::vector<SizeSample> samples = {{&most_, sum_at(extents, most_)}};
  for (const SizeProbe& probe : probes_)
    samples.push_back({&probe.symbols, sum_at(extents, probe.symbols)});
  // A form that is found from numbers may be another one at other sizes.
  if (const auto form = form_of(samples); form && is_sum(*form, extents)) return form;
  const auto sum = sum_of_products(graph_.varying, extents);
  return sum ? index_of(*sum) : std::nullopt;
}

}  // namespace hone::graph
