// search/policy.h - the search strategy of a tuning run with its options, made once for the run
// from a text such as "evolutionary:population=64,generations=5" (--search). It makes the searcher
// of each task, receives what the tasks measure, and may learn from it for later tasks and runs
// (policy_state.h keeps that in a file).
#pragma once

#include <string>

#include "hone/search/movable.h"
#include "hone/search/searcher.h"

namespace hone::search {

class Policy {
 public:
  // The text of `name` must outlive the policy.
  explicit Policy(std::string_view name) : name_(name) {}
  virtual ~Policy() = default;
  [[nodiscard]] std::string_view name() const { return name_; }
  // Makes the searcher of one task, which the policy and `part` must outlive. It moves in that part
  // of the task's space; null: in all of it. Searchers of several tasks may exist at the same time.
  [[nodiscard]] std::unique_ptr<Searcher> make_searcher(const SearchTask& task,
                                                        const space::Subspace* part = nullptr) {
    return make(task, part);
  }
  // Which decisions the searches of all tasks move.
  [[nodiscard]] MovableDecisions& movable() { return movable_; }
  // Prepares the cost model, which will guide the searches, for what they ask of it. It is an error
  // if they cannot do with this model.
  [[nodiscard]] virtual Status prepare(cost::CostModel& /*model*/) { return ok_status(); }
  // Receives the seconds that a task measured in this run; infinity for a candidate that failed. It
  // must not be called while a searcher proposes.
  virtual void observe(const SearchTask& task, std::span<const space::Point> points,
                       std::span<const double> seconds);
  // Learns off line from what earlier runs measured, as often as it is called: a pass over a task's
  // points. By default, it is told them like those of a run.
  virtual void rehearse(const SearchTask& task, std::span<const space::Point> points,
                        std::span<const double> seconds) {
    observe(task, points, seconds);
  }
  // Returns what was learned so far, as lines of text, or an error if the policy learns nothing.
  [[nodiscard]] virtual Result<std::string> save() const;
  // Replaces what was learned so far by the text that save() returned. After an error nothing has
  // changed.
  [[nodiscard]] virtual Status load(std::string_view state);

 private:
  [[nodiscard]] virtual std::unique_ptr<Searcher> make(const SearchTask& task,
                                                       const space::Subspace* part) = 0;

  std::string_view name_;
  MovableDecisions movable_;
};

inline constexpr std::string_view kDefaultStrategy = "mixed";

// Makes a policy from NAME or NAME:OPTION=VALUE,... Besides its own options, each strategy takes
// movable=WHICH (search/movable.h) and powers_of_two=0 or 1. An error lists the strategies, or the
// options of the named one.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy(std::string_view text);

[[nodiscard]] std::vector<std::string> strategy_names();
// Returns a line for each option: "population=96: of a generation", with its default.
[[nodiscard]] std::vector<std::string> strategy_options(std::string_view name);

}  // namespace hone::search
