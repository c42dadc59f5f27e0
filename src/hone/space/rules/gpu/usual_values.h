// space/rules/gpu/usual_values.h - default points of groups that compare their tiles by an estimate
// of the time that these take (internal to space).
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hone/space/sketch.h"

namespace hone::space {

// The values that decisions have at the default point.
class UsualValues {
 public:
  UsualValues() = default;
  // Takes the values that a choice has now.
  UsualValues(std::span<const DecisionId> decisions, const Choice& choice) {
    for (const DecisionId d : decisions) values_.emplace_back(d, choice[d]);
  }
  void set(MutableChoice& choice) const {
    for (const auto& [decision, value] : values_) choice.set(decision, value);
  }

 private:
  std::vector<std::pair<DecisionId, int64_t>> values_;
};

// Calls f for each combination of the options of some decisions. The last one changes fastest.
template <typename F>
void for_all_options(MutableChoice& choice, std::span<const DecisionId> decisions, const F& f) {
  if (decisions.empty()) return f();
  for (size_t o = 0; o < choice.options(decisions[0]).size(); ++o) {
    choice.set_index(decisions[0], static_cast<int>(o));
    for_all_options(choice, decisions.subspan(1), f);
  }
}

// Keeps the choice that takes the fewest cycles of those that it is shown.
class Cheapest {
 public:
  explicit Cheapest(MutableChoice& choice) : choice_(choice), found_(choice.indices()) {}
  void consider(double cycles) {
    if (cycles < least_) least_ = cycles, found_ = choice_.indices();
  }
  // Makes the choice what was found; if no choice was considered, what it was before.
  void choose() { choice_.indices() = found_; }

 private:
  MutableChoice& choice_;
  std::vector<int> found_;
  double least_ = INFINITY;
};

// Returns what a group by itself sets its decisions to, of all those that a builder has; nothing if
// that is illegal, as it is where no tile fits.
[[nodiscard]] inline std::optional<std::vector<int>> legal_default(
    const std::vector<Decision>& decisions, const Group& group) {
  std::vector<int> indices(decisions.size(), 0);
  MutableChoice choice(decisions, indices);
  group.set_default(choice);
  return group.legal(choice) ? std::optional(std::move(indices)) : std::nullopt;
}

}  // namespace hone::space
