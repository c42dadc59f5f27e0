#include "hone/graph/size_options.h"

#include <fmt/format.h>

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
      return fmt::format("--shape {}={}", name, range_text(forms, ranges));
    }
  }
  return fmt::format("--shape {}={}", symbol.name, text_of(step * symbol.min, step * symbol.max));
}

}  // namespace hone::graph
