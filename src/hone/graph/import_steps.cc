#include "hone/graph/import_steps.h"

#include <algorithm>

namespace hone::graph {
namespace {

constexpr int64_t kMostStep = 4096;

bool is_of(const SizeForm& form, size_t symbol) {
  return form.terms.size() == 1 && form.offset == 0 &&
         form.terms[0].symbols == std::vector<int>{static_cast<int>(symbol)};
}

class StepFinder {
 public:
  StepFinder(const ImportOptions& options, const RangeFailure& failure, const ReadModel& read)
      : options_(options), failure_(failure), read_(read) {}

  std::vector<SymbolStep> run() const {
    std::vector<SymbolStep> found;
    for (const SizeSymbol& symbol : failure_.symbols) {
      if (symbol.max - symbol.min < 2 || is_valid(symbol, symbol.max - 1)) continue;
      const int64_t step = step_below(symbol);
      if (step == 0) continue;
      SymbolStep made{.name = symbol.name, .step = step, .range = {}};
      made.is_given = !is_of_rule(symbol.name);
      const int64_t least = made.is_given ? (symbol.min + step - 1) / step * step : step;
      made.range = {least, symbol.max, {}};
      made.is_whole = !made.is_given || least == symbol.min;
      if (least < symbol.max) found.push_back(std::move(made));
    }
    return found;
  }

 private:
  // Returns the least divisor of the largest size that may be taken away from it, or 0.
  [[nodiscard]] int64_t step_below(const SizeSymbol& symbol) const {
    const int64_t most = std::min(symbol.max / 2, kMostStep);
    for (int64_t step = 2; step <= most; ++step) {
      if (symbol.max % step == 0 && symbol.max - step >= symbol.min &&
          is_valid(symbol, symbol.max - step))
        return step;
    }
    return 0;
  }

  [[nodiscard]] bool is_of_rule(const std::string& name) const {
    return std::ranges::count(failure_.batches, name) +
               std::ranges::count(failure_.sequences, name) >
           0;
  }

  // Returns whether the model is valid at this size of one symbol and the largest of the others.
  [[nodiscard]] bool is_valid(const SizeSymbol& symbol, int64_t size) const {
    ImportOptions tried = options_;
    set_symbol_range(tried, failure_, symbol.name, {size, size, {}});
    RangeFailure ignored;
    return read_(tried, ImportPart::kLargest, ignored).ok();
  }

  const ImportOptions& options_;
  const RangeFailure& failure_;
  const ReadModel& read_;
};

}  // namespace

std::vector<SymbolStep> symbol_steps(const ImportOptions& options, const RangeFailure& failure,
                                     const ReadModel& read) {
  if (!failure.is_valid_at_largest) return {};
  return StepFinder(options, failure, read).run();
}

void set_symbol_range(ImportOptions& options, const RangeFailure& failure, const std::string& name,
                      const DimRange& range) {
  const auto symbol = std::ranges::find(failure.symbols, name, &SizeSymbol::name);
  const auto index = static_cast<size_t>(symbol - failure.symbols.begin());
  bool is_set = false;
  for (const auto& [input, forms] : failure.inputs) {
    const auto given = options.ranges.find(input);
    if (given == options.ranges.end()) continue;
    for (size_t d = 0; d < forms.size() && d < given->second.size(); ++d) {
      DimRange& dim = given->second[d];
      if (!dim.symbol.empty() || dim.min == dim.max || !is_of(forms[d], index)) continue;
      dim = range;
      is_set = true;
    }
  }
  if (!is_set) options.ranges[name] = {range};
}

}  // namespace hone::graph
