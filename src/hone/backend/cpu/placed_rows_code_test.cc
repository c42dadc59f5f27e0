// Rows at places that data decide, as Gather copies them: machine code moves them in vectors.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/ir/passes/hoist_places.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::variable;

constexpr int64_t kRows = 6, kTable = 3;

// Returns the place as the graph emits it: it counts from the end if negative, and is clamped.
Expr place_in_table(const Expr& index) {
  const Expr positive = ir::select(ir::less(index, ir::constant(0)), index + kTable, index);
  return ir::min(ir::max(positive, ir::constant(0)), ir::constant(kTable - 1));
}

Expr element(const ir::BufferPtr& buffer, std::vector<Expr> at) {
  const Expr value = ir::load(buffer, std::move(at));
  return buffer->dtype == DType::kF16 ? ir::cast(DType::kF32, value) : value;
}

// y[r, i] = table[place(ids[r] * 3 - 4), i] + sum * x[r, i], with indices from -4 to 5.
ir::Program rows(DType type, int64_t columns, bool sum) {
  const auto ids = ir::make_buffer("ids", DType::kI64, {kRows});
  const auto table = ir::make_buffer("table", type, {kTable, columns});
  const auto x = ir::make_buffer("x", type, {kRows, columns});
  const auto y = ir::make_buffer("y", type, {kRows, columns});
  const auto r = ir::make_var("r"), i = ir::make_var("i");
  const Expr place = place_in_table(ir::load(ids, {variable(r)}) * 3 - 4);
  Expr value = element(table, {place, variable(i)});
  if (sum) value = value + element(x, {variable(r), variable(i)});
  if (type == DType::kF16) value = ir::cast(type, value);
  return program_of(
      {{ids, ir::Role::kInput},
       {table, ir::Role::kInput},
       {x, ir::Role::kInput},
       {y, ir::Role::kOutput}},
      loop(r, kRows, kSerial,
           {loop(i, columns, kSerial, {ir::make_store(y, {variable(r), variable(i)}, value)})}));
}

// y[place(ids[r] * 3 - 4), i] += x[r, i]
ir::Program updates(int64_t columns) {
  const auto ids = ir::make_buffer("ids", DType::kI64, {kRows});
  const auto x = ir::make_buffer("x", DType::kF32, {kRows, columns});
  const auto y = ir::make_buffer("y", DType::kF32, {kTable, columns});
  const auto t = ir::make_var("t"), j = ir::make_var("j");
  const auto r = ir::make_var("r"), i = ir::make_var("i");
  const std::vector<Expr> to = {place_in_table(ir::load(ids, {variable(r)}) * 3 - 4), variable(i)};
  const ir::Stmt zero =
      loop(t, kTable, kSerial,
           {loop(j, columns, kSerial,
                 {ir::make_store(y, {variable(t), variable(j)}, ir::constant_float(0))})});
  const Expr sum = ir::load(y, to) + ir::load(x, {variable(r), variable(i)});
  return program_of(
      {{ids, ir::Role::kInput}, {x, ir::Role::kInput}, {y, ir::Role::kOutput}},
      ir::make_block({zero, loop(r, kRows, kSerial,
                                 {loop(i, columns, kSerial, {ir::make_store(y, to, sum)})})}));
}

TEST(placed_rows_code, gives_the_elements) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI64, DType::kI8, DType::kF16}) {
    for (const int64_t columns : {1, 3, 7, 8, 17, 33, 64, 129, 300}) {
      for (const bool sum : {false, true}) {
        const ir::Program program = ir::hoist_places(rows(type, columns, sum));
        EXPECT_EQ(compare_with_interpreter(program, 8, 0), "") << dtype_name(type) << columns;
      }
    }
  }
}

TEST(placed_rows_code, adds_to_rows) {
  for (const int64_t columns : {1, 3, 7, 8, 17, 33, 129})
    EXPECT_EQ(compare_with_interpreter(ir::hoist_places(updates(columns)), 8), "") << columns;
}

TEST(placed_rows_code, moves_vectors_without_gathers) {
  for (const char* device : {"x86-64-avx512", "x86-64-avx2"}) {
    const InnerLoop plain = inner_loop_of(rows(DType::kF32, 4096, false), device);
    const InnerLoop made = inner_loop_of(ir::hoist_places(rows(DType::kF32, 4096, false)), device);
    const auto per_element = [](const InnerLoop& loop, double elements) {
      return static_cast<double>(loop.text.size()) / elements;
    };
    EXPECT_LT(per_element(made, 64) * 8, per_element(plain, 1)) << device;
    EXPECT_TRUE(std::none_of(made.text.begin(), made.text.end(), [](const std::string& line) {
      return line.find("gather") != std::string::npos;
    })) << device;
  }
}

}  // namespace
}  // namespace hone::backend::cpu
