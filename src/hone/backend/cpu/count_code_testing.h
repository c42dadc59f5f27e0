// backend/cpu/count_code_testing.h - compares counted instructions with executed ones.
#pragma once

#include <string>

#include "hone/backend/cpu/count_code.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {

struct CountCheck {
  std::string wrong;     // "" if the counts are exact or say that they are not
  bool skipped = false;  // nothing can be stepped through here
  int64_t phases = 0, exact = 0, inexact = 0;  // phases of a program that were compared
  double worst = 0;  // largest relative difference of phases that are not exact
};

// Compiles the program for the target, which this machine can run, and compares for each phase that
// runs with the model. Phases of more than `limit` counted instructions are left out.
[[nodiscard]] CountCheck check_counts(const ir::Program& program, const target::Target& target,
                                      int64_t limit);

}  // namespace hone::backend::cpu
