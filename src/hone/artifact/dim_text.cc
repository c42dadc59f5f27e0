// The words for a dimension that varies.
#include <algorithm>
#include <numeric>

#include "hone/artifact/artifact.h"

namespace hone::artifact {
namespace {

std::string text_of(const ArtifactSpec& spec, const ArtifactForm& form, bool is_factor = false);

// The text of what a term is a product of: a symbol, or a form behind all symbols, which itself has
// no forms as factors.
std::string factor_text(const ArtifactSpec& spec, size_t factor, bool of_factor) {
  if (factor < spec.symbols.size()) return spec.symbols[factor].name;
  const size_t form = factor - spec.symbols.size();
  if (of_factor || form >= spec.forms.size()) return "?";
  return "(" + text_of(spec, spec.forms[form], true) + ")";
}

// Symbols that count steps are said by what users give: a factor of 8 for a step of 32 is
// "height/4".
std::string text_of(const ArtifactSpec& spec, const ArtifactTerm& term, bool is_factor) {
  std::string text;
  int64_t steps = 1;
  for (const int symbol : term.symbols) {
    const auto i = static_cast<size_t>(symbol);
    text += (text.empty() ? "" : "*") + factor_text(spec, i, is_factor);
    if (i < spec.symbols.size()) steps *= spec.symbols[i].step;
  }
  const int64_t common = std::max<int64_t>(1, std::gcd(term.factor, steps));
  if (text.empty()) return std::to_string(term.factor);
  if (term.factor != common) text = fmt::format("{}*{}", term.factor / common, text);
  return steps == common ? text : fmt::format("{}/{}", text, steps / common);
}

std::string text_of(const ArtifactSpec& spec, const ArtifactForm& form, bool is_factor) {
  std::string text;
  for (const ArtifactTerm& term : form.terms)
    text += (text.empty() ? "" : " + ") + text_of(spec, term, is_factor);
  const size_t terms = form.terms.size() + (form.offset != 0 ? 1 : 0);
  if (form.offset != 0 || text.empty()) {
    const bool minus = form.offset < 0 && !text.empty();
    text += fmt::format("{}{}",
                        text.empty() ? ""
                        : minus      ? " - "
                                     : " + ",
                        minus ? -form.offset : form.offset);
  }
  if (form.divisor != 1)
    text = fmt::format(fmt::runtime(terms > 1 ? "({})/{}" : "{}/{}"), text, form.divisor);
  if (form.has_least()) text = fmt::format("max({}, {})", text, form.least);
  if (form.has_most()) text = fmt::format("min({}, {})", text, form.most);
  return text;
}

}  // namespace

std::string dim_text(const ArtifactSpec& spec, const std::vector<ArtifactPart>& dim) {
  std::string text;
  bool varies = false;
  for (const ArtifactPart& part : dim) {
    if (part.form < 0 && part.most == 1) continue;
    std::string own = std::to_string(part.most);
    if (part.form >= 0) {
      const ArtifactForm& form = spec.forms[static_cast<size_t>(part.form)];
      own = text_of(spec, form);
      const bool is_sum = form.divisor == 1 && (form.terms.size() > 1 || form.offset != 0) &&
                          !form.has_least() && !form.has_most();
      if (is_sum && dim.size() > 1) own = "(" + own + ")";
      varies = true;
    }
    text += (text.empty() ? "" : "*") + own;
  }
  return varies ? text : "";
}

}  // namespace hone::artifact
