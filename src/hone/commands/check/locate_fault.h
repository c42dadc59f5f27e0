// locate_fault.h - finds the pass that makes a library wrong: the first one after which the graph,
// run as it is then, computes something else (internal).
#pragma once

#include "hone/commands/check/model_check.h"
#include "hone/session/model_tasks.h"

namespace hone {

struct WrongPass {
  std::string pass;
  // The first node whose result is wrong in the graph after the pass; empty if it is not known.
  std::string node;
};
// Finds the wrong one of the passes that may be left out; nothing if they are right. `wrong` is the
// wrong output that the check found.
[[nodiscard]] Result<std::optional<WrongPass>> find_wrong_pass(ModelCheck& check,
                                                               const WrongOutput& wrong,
                                                               const CompileOptions& options,
                                                               const target::Target& target);

}  // namespace hone
