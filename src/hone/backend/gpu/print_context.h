// backend/gpu/print_context.h - the state that the parts of the printer share while they print a
// kernel.
#pragma once

#include <string>
#include <utility>

#include "hone/backend/gpu/c_functions.h"
#include "hone/backend/gpu/c_names.h"
#include "hone/backend/gpu/dialect.h"
#include "hone/base/status.h"
#include "hone/ir/ranges.h"

namespace hone::backend::gpu {

struct PrintContext {
  Dialect dialect;
  CNames& names;
  CFunctions& functions;
  ir::Ranges ranges;   // the ranges of variables in scope
  int64_t budget;      // number of nodes of expressions that may still be printed
  Status status = {};  // the first error

  void fail(Status error) {
    if (status.ok()) status = std::move(error);
  }
  [[nodiscard]] bool is_cuda() const { return dialect == Dialect::kCuda; }
};

// Returns whether all values of an interval are int.
[[nodiscard]] inline bool fits_int(const ir::Interval& i) {
  return i.lo >= std::numeric_limits<int32_t>::min() && i.hi <= std::numeric_limits<int32_t>::max();
}

}  // namespace hone::backend::gpu
