// backend/gpu/c_functions.h - functions that printed kernels call because C has no operator that
// does what the loop program's does (ir/scalar.h). Only those that are used are printed.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "hone/backend/gpu/dialect.h"
#include "hone/ir/expr.h"

namespace hone::backend::gpu {

class CFunctions {
 public:
  explicit CFunctions(Dialect dialect) : dialect_(dialect) {}
  // Notes that a function of this name is called, with those that it calls itself, and returns its
  // name.
  std::string_view use(std::string_view name);
  // Returns the definitions of all functions that are used.
  [[nodiscard]] std::string definitions() const;

  // Returns whether there is such a function, or a function of the dialects that this file names.
  [[nodiscard]] static bool is_name(std::string_view name);

 private:
  Dialect dialect_;
  std::set<std::string, std::less<>> used_;
};

// Returns the name of a function of floats in the dialect's library: "exp" or "expf". It is empty
// if there is none.
[[nodiscard]] std::string math_function(Dialect dialect, ir::Op op, bool is_double);
// Returns the name of the function that raises 2 to a power, which costs a fraction of any power.
[[nodiscard]] std::string power_of_2_function(Dialect dialect, bool is_double);

}  // namespace hone::backend::gpu
