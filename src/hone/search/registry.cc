#include "hone/search/registry.h"

#include <fmt/ranges.h>

#include "hone/search/evolutionary_searcher.h"
#include "hone/search/random_searcher.h"

namespace hone::search {

Result<std::unique_ptr<Searcher>> make_searcher(std::string_view name, const SearchTask& task) {
  if (name == "evolutionary")
    return std::unique_ptr<Searcher>(std::make_unique<EvolutionarySearcher>(task));
  if (name == "random") return std::unique_ptr<Searcher>(std::make_unique<RandomSearcher>(task));
  return invalid("unknown search strategy '{}', expected one of {}", name,
                 fmt::join(searcher_names(), ", "));
}

std::vector<std::string> searcher_names() { return {"evolutionary", "random"}; }

}  // namespace hone::search
