// graph/ops/microsoft.h - an entry of the tables of com.microsoft's operators.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Returns the definition of an operator that is a function of others.
[[nodiscard]] inline Op microsoft_op(std::string_view name, int min_inputs, int max_inputs,
                                     int max_outputs, std::string_view attributes,
                                     Status (*expand)(ExpandContext&)) {
  return {.name = name,
          .min_inputs = min_inputs,
          .max_inputs = max_inputs,
          .max_outputs = max_outputs,
          .attributes = attributes,
          .expand = expand};
}

}  // namespace hone::graph
