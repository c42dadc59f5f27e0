// trial/sensitivity.h - how much the decisions of a task's schedules matter, by role: what a search
// loses that leaves a decision alone (Fasor, section 5). Times are compared by their logarithms, so
// that tasks of all sizes count alike: an effect of 0.1 is about 10 % of the time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::trial {

// Both are logarithms of ratios of seconds, 0 or more.
struct RoleEffect {
  double gain = 0;  // default / best schedule that differs from the default in this role alone
  double loss = 0;  // best schedule known with this role as the default has it / that schedule
  // Returns what the role contributes, as far as these two show it.
  [[nodiscard]] double size() const { return gain > loss ? gain : loss; }
  bool operator==(const RoleEffect&) const = default;
};

// By space::Decision::common_role(). A role of which nothing was measured is missing.
using RoleEffects = std::map<std::string, RoleEffect, std::less<>>;

struct TaskSensitivity {
  uint64_t task = 0;
  std::string kernel_class;
  std::string shape;  // compute::describe of the task
  int threads = 1;
  int64_t unix_time = 0;
  RoleEffects roles;
  // The share of memory in the time of the default schedule (trial/bounds.h), between 0 and 1.
  std::optional<double> memory = {};
  bool operator==(const TaskSensitivity&) const = default;
};

// This version changes if a role or an effect changes its meaning. What was stored with another one
// is not used.
inline constexpr int kSensitivityVersion = 1;

// Returns an error if a number is negative, not finite or a share above 1, or a name is empty.
[[nodiscard]] Status check(const TaskSensitivity& sensitivity);

}  // namespace hone::trial
