// search/policy.h - what a run of tuning searches with: a strategy with its options, made once for
// the run from a text such as "evolutionary:population=64,generations=5" (--search).
#pragma once

#include <string>

#include "hone/search/searcher.h"

namespace hone::search {

class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // The searcher of one task; may be called for several tasks, whose searchers live side by side.
  [[nodiscard]] virtual std::unique_ptr<Searcher> make_searcher(const SearchTask& task) = 0;
};

inline constexpr std::string_view kDefaultStrategy = "mixed";

// NAME or NAME:OPTION=VALUE,...; an error lists the strategies, or the options of the one named.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy(std::string_view text);

[[nodiscard]] std::vector<std::string> strategy_names();
// A line for each option: "population=96: of a generation", with its default.
[[nodiscard]] std::vector<std::string> strategy_options(std::string_view name);

}  // namespace hone::search
