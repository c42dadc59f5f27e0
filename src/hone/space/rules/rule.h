// space/rules/rule.h - a rule looks at a task and builds one sketch of it. The rules of a kind of
// target are a table (cpu/rules.h), which Space::create walks.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "hone/space/sketch.h"

namespace hone::space {

// How well a sketch suits its task. The first sketch of a space is its default: whole and best ones
// come before possible ones, and equal ones in the order of the table.
enum class Fit : uint8_t {
  kNone,      // the rule does not apply
  kPossible,  // another way
  kBest,      // better than the possible ones
  kWhole,     // all stages in one nest: rules for single stages are not asked
};

// The task that rules look at.
struct Task {
  const compute::Dag& dag;
  trial::Accuracy accuracy;
  SketchBuilder whole;  // the task as it was given
  // The task with pointwise stages inlined and each sum in a stage of its own.
  SketchBuilder stages = whole;
  // The two stages of a task that is a single sum and its pointwise epilogue; "" for other tasks.
  std::string reduction = {}, epilogue = {};
  bool covered = false;  // some rule found that the whole task is one nest (Fit::kWhole)
  // Returns whether sums may be computed by algorithms whose terms cancel, as Winograd's.
  [[nodiscard]] bool may_round() const {
    return accuracy != trial::Accuracy::kStrict &&
           std::ranges::none_of(dag.stages, &compute::Stage::plain_sums);
  }
};

struct Rule {
  std::string_view name;
  // Returns whether the rule is asked at all.
  bool (*applies)(const Task& task);
  // Adds steps, decisions and groups to a copy of the task, which is dropped if the fit is kNone.
  Fit (*build)(SketchBuilder& builder, const Task& task);
  // If true, the rule's sketch may turn out to be illegal, and then the space does not have it. An
  // illegal sketch of another rule is an error.
  bool optional = false;
};

}  // namespace hone::space
