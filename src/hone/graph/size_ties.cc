#include "hone/graph/size_ties.h"

#include <algorithm>
#include <bit>
#include <set>

#include "hone/graph/infer.h"

namespace hone::graph {
namespace {

constexpr size_t kMostTied = 6;  // symbols of which each set is looked at

class TieFinder {
 public:
  TieFinder(const Graph& raw, const InputSizes& sizes, const std::set<std::string>& unnamed)
      : raw_(raw), sizes_(sizes), unnamed_(unnamed) {}

  std::vector<TiedSymbols> run() {
    std::set<int64_t> ends;
    for (const SizeSymbol& symbol : sizes_.symbols) ends.insert(symbol.max);
    for (const int64_t most : ends) find_among(open_symbols(most));
    return std::move(ties_);
  }

 private:
  // Returns the symbols with this end that are not valid if one of them alone is smaller.
  [[nodiscard]] std::vector<size_t> open_symbols(int64_t most) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < sizes_.symbols.size(); ++i) {
      const SizeSymbol& symbol = sizes_.symbols[i];
      if (symbol.max == most && symbol.min < most && !unnamed_.contains(symbol.name))
        found.push_back(i);
    }
    if (found.size() < 2) return {};
    std::erase_if(found, [&](size_t i) { return is_valid({i}); });
    return found;
  }

  // Takes one symbol after the other with the fewest others that may be smaller only with it.
  void find_among(std::vector<size_t> symbols) {
    if (symbols.size() > kMostTied) return;
    while (symbols.size() > 1) {
      const std::vector<size_t> tied = smallest_set(symbols);
      TiedSymbols names;
      for (const size_t i : tied) names.push_back(sizes_.symbols[i].name);
      if (names.size() > 1) ties_.push_back(names);
      std::erase_if(symbols, [&](size_t i) {
        return i == symbols[0] || std::count(tied.begin(), tied.end(), i) > 0;
      });
    }
  }

  // Returns the smallest set with the first symbol that is valid; empty if none is.
  [[nodiscard]] std::vector<size_t> smallest_set(const std::vector<size_t>& symbols) const {
    const unsigned all = 1U << (symbols.size() - 1);
    for (int count = 1; count < static_cast<int>(symbols.size()); ++count) {
      for (unsigned others = 1; others < all; ++others) {
        if (std::popcount(others) != count) continue;
        std::vector<size_t> set = {symbols[0]};
        for (size_t i = 1; i < symbols.size(); ++i)
          if ((others >> (i - 1) & 1U) != 0) set.push_back(symbols[i]);
        if (is_valid(set)) return set;
      }
    }
    return {};
  }

  // Returns whether the model is valid where these symbols are smaller and all others the largest.
  [[nodiscard]] bool is_valid(const std::vector<size_t>& smaller) const {
    std::vector<int64_t> point;
    int64_t least = 2;  // one element would be repeated
    for (const SizeSymbol& symbol : sizes_.symbols) point.push_back(symbol.max);
    for (const size_t i : smaller) least = std::max(least, sizes_.symbols[i].min);
    const int64_t most = point[smaller[0]];
    for (const size_t i : smaller)
      point[i] = std::clamp(most / 2, std::min(least, most - 1), most - 1);
    Graph graph = raw_;
    set_sizes(graph, sizes_, point);
    return infer_shapes(graph).ok();
  }

  const Graph& raw_;
  const InputSizes& sizes_;
  const std::set<std::string>& unnamed_;
  std::vector<TiedSymbols> ties_;
};

}  // namespace

std::vector<TiedSymbols> symbols_to_tie(const Graph& raw, const InputSizes& sizes,
                                        const std::set<std::string>& unnamed) {
  return TieFinder(raw, sizes, unnamed).run();
}

std::string tie_options(const std::vector<TiedSymbols>& ties) {
  std::string options;
  for (const TiedSymbols& names : ties) {
    for (size_t i = 1; i < names.size(); ++i)
      options += fmt::format("{}--shape {}={}", options.empty() ? "" : " ", names[i], names[0]);
  }
  return options.empty() ? "--shape NAME=batchx3 --shape batch=1..8" : options;
}

}  // namespace hone::graph
