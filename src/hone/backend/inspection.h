// backend/inspection.h - the description of code that a back end made, for people.
#pragma once

#include <vector>

#include "hone/explain.h"

namespace hone::backend {

struct Inspection {
  int registers_needed = 0;         // number of vector registers that the register tile needs
  std::vector<InnerLoop> loops;     // one per phase that runs with the model
  std::vector<CountedCode> counts;  // as many for a CPU, none for others
};

}  // namespace hone::backend
