#include "hone/graph/size_values.h"

#include "hone/graph/size_sums.h"

namespace hone::graph {

std::vector<int64_t> sizes_of(const Varying& varying, const std::vector<int64_t>& symbols) {
  std::vector<int64_t> sizes(kMaxForms, 0);
  for (size_t f = 0; f < varying.forms.size(); ++f)
    sizes[f] = value_of(varying, varying.forms[f], symbols);
  return sizes;
}

std::vector<int64_t> largest_symbols(const Varying& varying) {
  std::vector<int64_t> values;
  for (const SizeSymbol& symbol : varying.symbols) values.push_back(symbol.max);
  return values;
}

std::vector<int64_t> smallest_symbols(const Varying& varying) {
  std::vector<int64_t> values;
  for (const SizeSymbol& symbol : varying.symbols) values.push_back(symbol.min);
  return values;
}

int64_t step_of(const Varying& varying, int symbol) {
  for (const ShapeParts& input : varying.inputs) {
    for (const DimParts& dim : input) {
      for (const SizePart& part : dim) {
        if (part.form == kNoForm) continue;
        const SizeForm& form = varying.forms[static_cast<size_t>(part.form)];
        if (form.terms.size() == 1 && form.terms[0].symbols == std::vector{symbol})
          return form.terms[0].factor;
      }
    }
  }
  return 1;
}

std::vector<int64_t> shape_of(const ShapeParts& parts, const std::vector<int64_t>& largest,
                              const std::vector<int64_t>& sizes) {
  std::vector<int64_t> shape = largest;
  for (size_t d = 0; d < parts.size(); ++d) {
    shape[d] = 1;
    for (const SizePart& part : parts[d])
      shape[d] *= part.form == kNoForm ? part.most : sizes[static_cast<size_t>(part.form)];
  }
  return shape;
}

}  // namespace hone::graph
