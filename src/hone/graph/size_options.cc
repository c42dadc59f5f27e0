#include "hone/graph/size_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "hone/graph/size_sums.h"
#include "hone/graph/size_values.h"

namespace hone::graph {
namespace {

// The index of the only symbol of a form, or -1.
int symbol_of(const SizeForm& form) {
  const bool is_one =
      form.terms.size() == 1 && form.terms[0].symbols.size() == 1 && form.divisor == 1;
  return is_one ? form.terms[0].symbols[0] : -1;
}

std::string text_of(int64_t least, int64_t most) {
  return least == most ? std::to_string(most) : fmt::format("{}..{}", least, most);
}

// A factor of a term: a symbol, or another form in brackets.
std::string factor_text(const Varying& varying, int factor) {
  if (factor >= 0) return varying.symbols[static_cast<size_t>(factor)].name;
  return fmt::format(
      "({})", form_text(varying, varying.forms[static_cast<size_t>(form_of_factor(factor))]));
}

std::string term_text(const Varying& varying, const SizeTerm& term) {
  int64_t steps = 1;
  std::string product;
  for (const int factor : term.symbols) {
    if (factor >= 0) steps *= step_of(varying, factor);
    product += (product.empty() ? "" : "*") + factor_text(varying, factor);
  }
  const int64_t common = std::gcd(term.factor, steps);
  const int64_t multiple = term.factor / common, divisor = steps / common;
  if (product.empty() || multiple != 1)
    product = std::to_string(multiple) + (product.empty() ? "" : "*" + product);
  return divisor == 1 ? product : fmt::format("{}/{}", product, divisor);
}

// The shape of an input in --shape: ranges, and the names of symbols of the rule for open
// dimensions, which other inputs may have, too, but for one symbol.
std::string shape_text(const std::vector<SizeForm>& forms, const std::vector<SizeSymbol>& symbols,
                       const SizeSymbol& but) {
  std::vector<std::string> extents;
  bool has_names = false;
  for (const SizeForm& form : forms) {
    const int own = symbol_of(form);
    const std::string name = own < 0 ? "" : symbols[static_cast<size_t>(own)].name;
    const bool is_symbol = own >= 0 && form.offset == 0 && form.terms[0].factor == 1;
    const bool is_of_rule = name == kBatchSymbol || name == kSequenceSymbol;
    if (is_symbol && is_of_rule && name != but.name) {
      extents.push_back(name);
      has_names = true;
    } else {
      extents.push_back(range_text({form}, symbols));
    }
  }
  return fmt::format("{}", fmt::join(extents, has_names ? "," : "x"));
}

}  // namespace

std::string range_text(const std::vector<SizeForm>& forms, const std::vector<SizeSymbol>& symbols) {
  std::vector<int64_t> least, most;
  for (const SizeSymbol& symbol : symbols) {
    least.push_back(symbol.min);
    most.push_back(symbol.max);
  }
  std::string text;
  for (const SizeForm& form : forms)
    text += (text.empty() ? "" : "x") + text_of(value_of(form, least), value_of(form, most));
  return text;
}

std::string form_text(const Varying& varying, const SizeForm& form) {
  std::string text;
  for (const SizeTerm& term : form.terms)
    text += (text.empty() ? "" : " + ") + term_text(varying, term);
  if (form.offset != 0 || text.empty())
    text += text.empty()
                ? std::to_string(form.offset)
                : fmt::format(" {} {}", form.offset < 0 ? "-" : "+", std::abs(form.offset));
  const bool is_one = form.terms.size() == 1 && form.offset == 0;
  if (form.divisor != 1)
    text = fmt::format("{}/{}", is_one ? text : "(" + text + ")", form.divisor);
  if (form.has_least()) text = fmt::format("max({}, {})", text, form.least);
  if (form.has_most()) text = fmt::format("min({}, {})", text, form.most);
  return text;
}

std::string run_text(const Varying& varying, const std::vector<int64_t>& symbols) {
  std::string text;
  for (size_t s = 0; s < symbols.size(); ++s)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", varying.symbols[s].name,
                        symbols[s] * step_of(varying, static_cast<int>(s)));
  return text;
}

std::string range_option(const SizeSymbol& symbol, const std::vector<SizeSymbol>& symbols,
                         const InputForms& inputs) {
  int64_t step = 1;
  for (const auto& [name, forms] : inputs) {
    for (size_t d = 0; d < forms.size(); ++d) {
      const int own = symbol_of(forms[d]);
      if (own < 0 || symbols[static_cast<size_t>(own)].name != symbol.name) continue;
      step = forms[d].terms[0].factor;
      // A text that begins with the name of an input is the shape of that.
      if (symbol.name != fmt::format("{}.{}", name, d) && !inputs.contains(symbol.name)) continue;
      std::vector<SizeSymbol> ranges = symbols;
      ranges[static_cast<size_t>(own)] = symbol;
      return fmt::format("--shape {}={}", name, shape_text(forms, ranges, symbol));
    }
  }
  return fmt::format("--shape {}={}", symbol.name, text_of(step * symbol.min, step * symbol.max));
}

}  // namespace hone::graph
