// ir/sink_loops.h - moves loops around a body into the loops of the body, so that a running sum per
// column becomes one step of all columns after another:
//
//   for i { alloc s[1] { s[0] = 0        for k { s[0] = s[0] + x[k, i]  y[k, i] = s[0] } } }
//   alloc s[1, I] { for i { s[0, i] = 0 }  for k { for i { s[0, i] = s[0, i] + x[k, i]  ... } } }
//
// It requires that no iteration of the loops reads or writes what another one writes, except in
// buffers that the body allocates; those get a dimension for each of the loops. A loop of the body
// whose bounds depend on the moved loops or on memory stays inside.
#pragma once

#include <functional>

#include "hone/ir/stmt.h"

namespace hone::ir {

struct SunkLoop {
  VarPtr var;  // counts from 0
  int64_t extent;
};
// Moves the loops. The function `around` puts those loops, with any guards of their iterations,
// around statements; it is called for each run of statements that stay together.
[[nodiscard]] std::vector<Stmt> sink_loops(
    const std::vector<Stmt>& body, const std::vector<SunkLoop>& loops,
    const std::function<std::vector<Stmt>(std::vector<Stmt>)>& around);

}  // namespace hone::ir
