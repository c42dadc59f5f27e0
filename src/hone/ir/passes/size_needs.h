// ir/passes/size_needs.h - when something is needed in a run whose sizes are smaller than the
// shapes that a program was made for.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hone/ir/ranges.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

// The element with index i in `dimension` is needed only if
//   (i % period) * scale - offset < unit * size, where the size is element `form` of the sizes;
// i itself counts if the period is 0.
struct SizeLimit {
  int form = 0;
  int dimension = 0;
  int64_t period = 0;
  int64_t scale = 1, offset = 0, unit = 1;
  bool operator==(const SizeLimit&) const = default;
};

// Something is needed only if at < unit * size.
struct Need {
  int form = 0;
  Linear at;
  int64_t unit = 1;
};
// Something is needed as a whole, and only in runs whose size is `least` or more.
struct RunNeed {
  int form = 0;
  int64_t least = 0;
  bool operator==(const RunNeed&) const = default;
};
// Returns a need that holds where this one does, of a size that is a multiple of `multiple`: if the
// first of g rows is before a multiple of g, so is the last one, as in tiles of Winograd's
// algorithm that end where the size does.
[[nodiscard]] Need strengthened(Need need, int64_t multiple);
// Returns the runs that one of two readers needs: of the forms that both name, the smaller numbers.
[[nodiscard]] std::vector<RunNeed> needed_by_either(const std::vector<RunNeed>& a,
                                                    const std::vector<RunNeed>& b);
// Joins needs of which each one holds: the larger numbers.
[[nodiscard]] std::vector<RunNeed> needed_by_all(std::vector<RunNeed> a,
                                                 const std::vector<RunNeed>& b);

// Returns whether an expression is a quotient, or its remainder, that is rounded down and whose
// divisor is a positive number.
[[nodiscard]] bool has_positive_divisor(const ExprNode& e);
// Returns the least (or, if `most`, the largest) value of a form for all values of the variables
// that `is_inner` names, as a form of the others; nothing if there is no bound.
[[nodiscard]] std::optional<Linear> bound_of(const Linear& form,
                                             const std::function<bool(const Var*)>& is_inner,
                                             const Ranges& ranges, bool most = false);

// Returns the form of the size that an expression is.
using FormOf = std::function<std::optional<int>(const Expr& e)>;
// Returns when an iteration of a loop can run whose end is at a size of the run. Nothing is known
// of other loops.
[[nodiscard]] std::optional<Need> need_of_loop(const StmtNode& loop, const FormOf& form_of);
// Returns whether statements have a loop around them whose end is loaded.
[[nodiscard]] bool has_loaded_end(std::span<const StmtNode* const> around);

// Returns the loop that runs once for each allocation of a buffer and, one iteration after the
// other, has a statement in it, of which `around` are the statements around it from the outermost
// one on; null if there is none.
[[nodiscard]] const StmtNode* carrying_loop(const Buffer& buffer,
                                            std::span<const StmtNode* const> around);

}  // namespace hone::ir
