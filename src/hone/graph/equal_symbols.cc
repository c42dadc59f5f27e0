#include "hone/graph/equal_symbols.h"

#include <algorithm>

#include "hone/graph/import_steps.h"

namespace hone::graph {
namespace {

constexpr size_t kMostSymbols = 6;  // of which all pairs are looked at

// Returns whether no option can name a symbol, as it is called after a place of an input.
bool is_unnamed(const std::string& name, const InputForms& inputs) {
  const size_t point = name.rfind('.');
  return point != std::string::npos && inputs.contains(name.substr(0, point));
}

}  // namespace

std::vector<EqualSymbols> equal_symbols(const ImportOptions& options, const RangeFailure& failure,
                                        const ReadModel& read) {
  const std::vector<SizeSymbol>& symbols = failure.symbols;
  if (failure.is_valid_at_largest || !failure.at_sizes || symbols.size() > kMostSymbols) return {};
  const auto is_valid = [&](const EqualSymbols& pair, int64_t one, int64_t other) {
    ImportOptions tried = options;
    set_symbol_range(tried, failure, pair.one.name, {one, one, {}});
    set_symbol_range(tried, failure, pair.other.name, {other, other, {}});
    RangeFailure ignored;
    return read(tried, ImportPart::kLargest, ignored).ok();
  };
  std::vector<EqualSymbols> found;
  for (size_t i = 0; i < symbols.size(); ++i) {
    for (size_t j = i + 1; j < symbols.size(); ++j) {
      const EqualSymbols pair = {symbols[i], symbols[j]};
      if (pair.one.max == pair.other.max || is_unnamed(pair.one.name, failure.inputs) ||
          is_unnamed(pair.other.name, failure.inputs))
        continue;
      const int64_t size = std::min(pair.one.max, pair.other.max);
      if (is_valid(pair, size, size) && !is_valid(pair, size, size + 1)) found.push_back(pair);
    }
  }
  return found;
}

std::string advice_for_equal(const std::vector<EqualSymbols>& symbols) {
  std::string options;
  for (const EqualSymbols& pair : symbols) {
    const auto& [one, other] = pair;
    if (!pair.have_common_size()) {
      return fmt::format(
          "'{}' and '{}' have to be equal, and their ranges {}..{} and {}..{} have "
          "no common size",
          one.name, other.name, one.min, one.max, other.min, other.max);
    }
    options += fmt::format(" --shape {}={}", other.name, one.name);
  }
  if (symbols.empty()) return "";
  const auto& [one, other] = symbols[0];
  return fmt::format("'{}' and '{}' have to be equal: give them one symbol and one range ({})",
                     one.name, other.name, options.substr(1));
}

}  // namespace hone::graph
