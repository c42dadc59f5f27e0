#include <gtest/gtest.h>

#include <cmath>

#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

// The largest elements of two rows; `value` gets the element and the old value.
template <typename Value>
Dag largest(const Value& value) {
  DagBuilder b;
  const auto data = b.input("data", {2, 5}), out = b.output("out", {2});
  const std::vector<Axis> axes = {make_axis("row", 2)};
  const Axis r = make_axis("r", 5);
  const ir::Expr row = ir::variable(axes[0].var);
  Output output{out, {row}, nullptr, nullptr, nullptr, nullptr};
  output.value = value(ir::load(data, {row, ir::variable(r.var)}), ir::load(out, {row}));
  output.identity = ir::constant_float(-HUGE_VAL);
  b.add({"most", "most", axes, {r}, nullptr, {std::move(output)}, {}, {}});
  return testing::finish(std::move(b));
}

// Records of a maximum hold whatever the order of its operands, which decides about NaN alone.
TEST(task_key, is_that_of_a_maximum_in_either_order) {
  const auto in_front = [](const ir::Expr& x, const ir::Expr& old) { return ir::max(old, x); };
  const auto behind = [](const ir::Expr& x, const ir::Expr& old) { return ir::max(x, old); };
  const auto least = [](const ir::Expr& x, const ir::Expr& old) { return ir::min(x, old); };
  const auto of_negative = [](const ir::Expr& x, const ir::Expr& old) {
    return ir::max(ir::make(ir::Op::kNeg, {x}), old);
  };
  const uint64_t key = task_key(largest(in_front));
  EXPECT_EQ(task_key(largest(behind)), key);
  EXPECT_NE(task_key(largest(least)), key);
  EXPECT_NE(task_key(largest(of_negative)), key);
}

}  // namespace
}  // namespace hone::compute
