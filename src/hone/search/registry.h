// search/registry.h - the search strategies by name (--search).
#pragma once

#include <string>

#include "hone/search/searcher.h"

namespace hone::search {

// The error lists the known names.
[[nodiscard]] Result<std::unique_ptr<Searcher>> make_searcher(std::string_view name,
                                                              const SearchTask& task);
[[nodiscard]] std::vector<std::string> searcher_names();

}  // namespace hone::search
