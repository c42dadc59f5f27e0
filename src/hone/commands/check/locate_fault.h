// locate_fault.h - what makes a library wrong: the pass after which the graph computes something
// else, found by running the graph as it is after each (internal to the facade).
#pragma once

#include "hone/commands/check/model_check.h"
#include "hone/session/model_tasks.h"

namespace hone {

struct WrongPass {
  std::string pass;
  std::string node;  // the first of the graph after it whose result is wrong; "" if none is known
};
// Of the passes that may be left out; nullopt: they are right. `wrong`: what the check found.
[[nodiscard]] Result<std::optional<WrongPass>> find_wrong_pass(ModelCheck& check,
                                                               const WrongOutput& wrong,
                                                               const CompileOptions& options,
                                                               const target::Target& target);

}  // namespace hone
