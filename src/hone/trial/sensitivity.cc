#include "hone/trial/sensitivity.h"

#include <cmath>

namespace hone::trial {

Status check(const TaskSensitivity& sensitivity) {
  if (sensitivity.kernel_class.empty()) return invalid("sensitivity: no kernel class");
  if (sensitivity.threads < 1)
    return invalid("sensitivity: {} threads, expected 1 or more", sensitivity.threads);
  if (sensitivity.roles.empty()) return invalid("sensitivity: no role");
  if (sensitivity.memory && !(*sensitivity.memory >= 0 && *sensitivity.memory <= 1))
    return invalid("sensitivity: the share of memory is {}, expected 0 to 1", *sensitivity.memory);
  for (const auto& [role, effect] : sensitivity.roles) {
    if (role.empty()) return invalid("sensitivity: a role has no name");
    for (const double number : {effect.gain, effect.loss}) {
      if (!std::isfinite(number) || number < 0)
        return invalid("sensitivity: {} is {}, expected 0 or more", role, number);
    }
  }
  return ok_status();
}

}  // namespace hone::trial
