// search/policy.h - what a run of tuning searches with: a strategy with its options, made once for
// the run from a text such as "evolutionary:population=64,generations=5" (--search). It makes the
// searcher of each task, hears what the tasks measure, and may learn from it for tasks and runs to
// come (policy_state.h keeps that in a file).
#pragma once

#include <string>

#include "hone/search/searcher.h"

namespace hone::search {

class Policy {
 public:
  // `name` outlives it.
  explicit Policy(std::string_view name) : name_(name) {}
  virtual ~Policy() = default;
  [[nodiscard]] std::string_view name() const { return name_; }
  // The searcher of one task, which the policy outlives; may be called for several tasks, whose
  // searchers live side by side.
  [[nodiscard]] virtual std::unique_ptr<Searcher> make_searcher(const SearchTask& task) = 0;
  // What a task measured in this run; infinity for a candidate that failed. Not while a searcher
  // proposes.
  virtual void observe(const SearchTask& task, std::span<const space::Point> points,
                       std::span<const double> seconds);
  // What was learned so far, as lines of text; an error if it is a policy that learns nothing.
  [[nodiscard]] virtual Result<std::string> save() const;
  // Takes what save() gave in place of what was learned so far. After an error nothing is changed.
  [[nodiscard]] virtual Status load(std::string_view state);

 private:
  std::string_view name_;
};

inline constexpr std::string_view kDefaultStrategy = "mixed";

// NAME or NAME:OPTION=VALUE,...; an error lists the strategies, or the options of the one named.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy(std::string_view text);

[[nodiscard]] std::vector<std::string> strategy_names();
// A line for each option: "population=96: of a generation", with its default.
[[nodiscard]] std::vector<std::string> strategy_options(std::string_view name);

}  // namespace hone::search
