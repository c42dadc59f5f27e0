#include "hone/search/registry.h"

#include <fmt/ranges.h>

#include "hone/search/annealing_searcher.h"
#include "hone/search/beam_searcher.h"
#include "hone/search/coordinate_searcher.h"
#include "hone/search/evolutionary_searcher.h"
#include "hone/search/mixed_searcher.h"
#include "hone/search/random_searcher.h"

namespace hone::search {
namespace {

using Made = std::unique_ptr<Searcher>;

template <typename Strategy>
Made make_guided(const SearchTask& task) {
  return std::make_unique<Strategy>(std::make_shared<Guide>(task));
}
Made make_random(const SearchTask& task) { return std::make_unique<RandomSearcher>(task); }

struct Entry {
  std::string_view name;
  Made (*make)(const SearchTask&);
};
constexpr Entry kSearchers[] = {{"mixed", make_guided<MixedSearcher>},
                                {"evolutionary", make_guided<EvolutionarySearcher>},
                                {"annealing", make_guided<AnnealingSearcher>},
                                {"coordinate", make_guided<CoordinateSearcher>},
                                {"beam", make_guided<BeamSearcher>},
                                {"random", make_random}};

}  // namespace

Result<std::unique_ptr<Searcher>> make_searcher(std::string_view name, const SearchTask& task) {
  for (const Entry& entry : kSearchers) {
    if (entry.name == name) return entry.make(task);
  }
  return invalid("unknown search strategy '{}', expected one of {}", name,
                 fmt::join(searcher_names(), ", "));
}

std::vector<std::string> searcher_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kSearchers) names.emplace_back(entry.name);
  return names;
}

}  // namespace hone::search
