// finished_sketch.h - a sketch of a space: what its rules have built, with its decisions.
#pragma once

#include <algorithm>

#include "hone/space/sketch.h"
#include "hone/space/space.h"

namespace hone::space {

struct Space::Sketch {
  schedule::State state;
  schedule::Steps structure;
  std::vector<Decision> decisions;
  std::vector<std::shared_ptr<const Group>> groups;
  bool for_threads = false;
  size_t usual_steps = 0;      // number of steps of the default point
  std::string algorithm = {};  // what all points use (schedule::algorithm_of)

  // Finishes the sketch that rules have built. Returns an error if its default point is illegal.
  [[nodiscard]] static Result<std::shared_ptr<const Sketch>> finish(
      SketchBuilder builder, const std::shared_ptr<const compute::Dag>& dag);
  [[nodiscard]] std::vector<int> default_choices() const {
    std::vector<int> choices(decisions.size(), 0);
    MutableChoice choice(decisions, choices);
    for (const auto& group : groups) group->set_default(choice);
    return choices;
  }
  [[nodiscard]] bool legal(const std::vector<int>& choices) const {
    const Choice choice(decisions, choices);
    return std::all_of(groups.begin(), groups.end(),
                       [&](const auto& group) { return group->legal(choice); });
  }
  void canonicalise(std::vector<int>& choices) const {
    MutableChoice choice(decisions, choices);
    for (const auto& group : groups) group->canonicalise(choice);
  }
  void append_steps(const std::vector<int>& choices, schedule::Steps& steps) const {
    const Choice choice(decisions, choices);
    for (const auto& group : groups) group->append_steps(choice, steps);
  }
  [[nodiscard]] schedule::Steps steps(const std::vector<int>& choices) const;
  [[nodiscard]] Result<Candidate> instantiate(const std::vector<int>& choices,
                                              const std::shared_ptr<const compute::Dag>& dag) const;
};

}  // namespace hone::space
