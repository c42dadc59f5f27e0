// Range of which a run computes the limit, or also the start where the limit is so far behind it in
// all runs.
#include "hone/graph/integer_at.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// Returns an error unless an operand is one integer of the first one's type.
Status check_integer(const ExpandContext& c, size_t i, const char* name) {
  const bool is_integer = c.dtype(i) == DType::kI64 || c.dtype(i) == DType::kI32;
  if (!is_integer || varies(c, i)) return c.required(i, name).status();
  if (num_elements(c.shape(i)) == 1 && c.dtype(i) == c.dtype(0)) return ok_status();
  return c.fail("{} is {} {}", name, dtype_name(c.dtype(i)), to_string(c.shape(i)));
}

// Returns how many steps lead from a start up to a limit, or down to it.
int64_t steps_between(int64_t start, int64_t limit, int64_t step) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t distance = 0;
  if (__builtin_sub_overflow(limit, start, &distance)) return limit > start ? kMost : 0;
  if (step < 0) distance = -distance;
  const int64_t length = step < 0 ? -step : step;
  return distance <= 0 ? 0 : (distance - 1) / length + 1;
}

// Returns the elements from a start on.
ValueId elements_from(ExpandContext& c, ValueId start, int64_t step, int64_t count) {
  const ValueId steps =
      c.binary("Mul", numbers_from_0(c, c.dtype(0), {count}), static_cast<double>(step));
  return c.binary("Add", steps, start);
}

// Returns how many elements a run has, of a positive step.
ValueId count_of_run(ExpandContext& c, ValueId start, int64_t step) {
  const ValueId distance = c.binary("Sub", c.reshape(c.input(1), {1}), start);
  const ValueId rounded = c.binary("Add", distance, static_cast<double>(step - 1));
  return c.cast(c.binary("Max", c.binary("Div", rounded, static_cast<double>(step)), 0.0),
                DType::kI64);
}

}  // namespace

Status propagate_range(ExpandContext& c) {
  const char* const names[] = {"the start", "the limit", "the step"};
  for (size_t i = 0; i < 3; ++i) HONE_RETURN_IF_ERROR(check_integer(c, i, names[i]));
  HONE_ASSIGN_OR_RETURN(const Tensor* const given, c.required(2, names[2]));
  const int64_t step = integer_at(*given, 0);
  if (step == 0) return c.fail("a step of 0");
  const ValueId start = c.reshape(c.input(0), {1});
  const auto span = difference_of_elements(c.graph(), c.nodes(), {c.input(1), 0}, {c.input(0), 0});
  if (span) {
    c.result(0, elements_from(c, start, step, steps_between(0, *span, step)));
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const Tensor* const first, c.required(0, names[0]));
  const Tensor* const upper = c.upper_of(c.input(1));
  if (upper == nullptr || step < 0) return c.required(1, names[1]).status();
  const int64_t most = steps_between(integer_at(*first, 0), integer_at(*upper, 0), step);
  const ValueId all = elements_from(c, start, step, most);
  c.result(0, most == 0 ? all : with_extents(c, all, count_of_run(c, start, step)));
  return ok_status();
}

}  // namespace hone::graph
