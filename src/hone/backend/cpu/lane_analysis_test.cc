// Tests the width of elements by which a vectorized loop chooses its number of lanes.
#include "hone/backend/cpu/lane_analysis.h"

#include <gtest/gtest.h>

#include <functional>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::constant_float;
using ir::Expr;
using ir::variable;

constexpr int64_t kRows = 9, kLength = 400;

// Rows of 32-bit data, and numbers of 64 bits.
struct Buffers {
  ir::BufferPtr x = ir::make_buffer("x", DType::kF32, {kRows, kLength});
  ir::BufferPtr numbers = ir::make_buffer("numbers", DType::kI64, {kLength});
  [[nodiscard]] Expr data(const Expr& row, const Expr& column) const {
    return ir::load(x, {row, column});
  }
  [[nodiscard]] Expr number(const Expr& at) const { return ir::load(numbers, {at}); }
  // Inside the rows whatever the number is.
  [[nodiscard]] Expr row(const Expr& at) const {
    const Expr given = number(at);
    const Expr positive = ir::select(ir::less(given, constant(0)), given + kRows, given);
    return ir::min(ir::max(positive, constant(0)), constant(kRows - 1));
  }
};

// Returns the width for the loop: vectorized j: y[j] = value(j).
int element_bytes(const std::function<Expr(const Expr& j)>& value) {
  const auto y = ir::make_buffer("y", DType::kF32, {kLength});
  const auto j = ir::make_var("j");
  const ir::Stmt store = ir::make_store(y, {variable(j)}, value(variable(j)));
  return find_lane_use(*loop(j, kLength, kVector, {store})).facts.element_bytes;
}

TEST(find_lane_use, counts_what_is_computed_in_vectors) {
  const Buffers b;
  const Expr zero = constant(0);
  EXPECT_EQ(element_bytes([&](const Expr& j) { return b.data(zero, j); }), 4);
  EXPECT_EQ(element_bytes([&](const Expr& j) {
              return ir::cast(DType::kF32, ir::cast(DType::kF64, b.data(zero, j)));
            }),
            8);
  EXPECT_EQ(element_bytes([&](const Expr& j) { return ir::cast(DType::kF32, b.number(j)); }), 8);
}

TEST(find_lane_use, an_index_that_all_lanes_share_is_no_vector) {
  const Buffers b;
  const Expr zero = constant(0);
  EXPECT_EQ(element_bytes([&](const Expr& j) { return b.data(b.number(zero), j); }), 4);
  EXPECT_EQ(element_bytes([&](const Expr& j) { return b.data(b.row(zero), j); }), 4);
  EXPECT_EQ(element_bytes([&](const Expr& j) { return b.data(zero, j * 2 - b.number(zero)); }), 4);
  EXPECT_EQ(element_bytes([&](const Expr& j) { return b.data(zero, b.number(j)); }), 8);
  EXPECT_EQ(element_bytes([&](const Expr& j) {
              return b.data(zero, ir::min(j + b.number(zero), constant(kLength - 1)));
            }),
            8);
}

TEST(find_lane_use, a_test_or_cast_that_all_lanes_share_is_no_vector) {
  const Buffers b;
  EXPECT_EQ(element_bytes([&](const Expr& j) {
              return b.data(constant(0), j) * ir::cast(DType::kF32, b.number(constant(0)));
            }),
            4);
  const auto where = [&](const std::function<Expr(const Expr& j)>& end) {
    return element_bytes([&](const Expr& j) {
      return ir::select(ir::less(j, end(j)), b.data(constant(0), j), constant_float(0));
    });
  };
  const auto shared = [&](const Expr& j) {
    return ir::select(ir::less(b.number(constant(0)), constant(3)), b.data(constant(0), j),
                      constant_float(0));
  };
  EXPECT_EQ(element_bytes(shared), 4);
  EXPECT_EQ(where([&](const Expr&) { return b.number(constant(0)); }), 8);
  EXPECT_EQ(where([&](const Expr& j) { return b.number(j); }), 8);
}

// y[i, :] = 2 x[the row of number i, :].
// Sums of x[0, j] and x[1, j] side by side, to elements `first` and `second` of one buffer.
LaneUse two_sums(int64_t first, int64_t second) {
  const Buffers b;
  const auto y = ir::make_buffer("y", DType::kF32, {kRows});
  const auto j = ir::make_var("j");
  std::vector<ir::Stmt> stores;
  for (const int64_t row : {0, 1}) {
    const std::vector<Expr> at = {constant(row == 0 ? first : second)};
    stores.push_back(ir::make_store(y, at, ir::load(y, at) + b.data(constant(row), variable(j))));
  }
  return find_lane_use(*loop(j, kLength, kVector, stores));
}

TEST(find_lane_use, sums_of_several_rows_run_side_by_side) {
  const LaneUse apart = two_sums(0, 1), same = two_sums(3, 3);
  EXPECT_TRUE(apart.facts.vectorizable);
  EXPECT_EQ(apart.partials.size(), 2u);
  EXPECT_FALSE(same.facts.vectorizable) << "one element";
}

TEST(find_lane_use, rows_by_wide_numbers_take_whole_vectors) {
  const Buffers b;
  const auto y = ir::make_buffer("y", DType::kF32, {kRows, kLength});
  const auto i = ir::make_var("i"), j = ir::make_var("j");
  const Expr element = b.data(b.row(variable(i)), variable(j));
  const ir::Program program =
      program_of({{b.x, ir::Role::kInput}, {b.numbers, ir::Role::kInput}, {y, ir::Role::kOutput}},
                 loop(i, kRows, kSerial,
                      {loop(j, kLength, kVector,
                            {ir::make_store(y, {variable(i), variable(j)}, element + element)})}));
  EXPECT_EQ(compare_with_interpreter(program, 3, 0), "");
  EXPECT_EQ(inner_loop_of(program, "x86-64-avx512").vector_bits, 512);
  EXPECT_EQ(inner_loop_of(program, "x86-64-avx2").vector_bits, 256);
}

}  // namespace
}  // namespace hone::backend::cpu
