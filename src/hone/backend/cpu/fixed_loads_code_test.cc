// Numbers that memory holds throughout a kernel, as the sizes of a run: what is computed of them
// alone is computed where the kernel begins.
#include <gtest/gtest.h>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::Expr;
using ir::variable;

constexpr int64_t kRows = 64, kLanes = 16;

// y[k, lane] = x[place, lane] * 2 in rows that begin at `place` of the step k.
ir::Program rows_at(const ir::BufferPtr& sizes, const Expr& offset, ir::Role role,
                    std::vector<ir::Stmt> more = {}) {
  const auto x = ir::make_buffer("x", DType::kF32, {kRows + 8, kLanes});
  const auto y = ir::make_buffer("y", DType::kF32, {kRows, kLanes});
  const auto k = ir::make_var("k"), lane = ir::make_var("lane");
  const Expr row = variable(k) + ir::max(constant(0), ir::min(offset, constant(7)));
  std::vector<ir::Stmt> body = {
      loop(lane, kLanes, kVector,
           {ir::make_store(y, {variable(k), variable(lane)},
                           ir::load(x, {row, variable(lane)}) * ir::constant_float(2))})};
  body.insert(body.end(), more.begin(), more.end());
  return program_of({{sizes, role}, {x, ir::Role::kInput}, {y, ir::Role::kOutput}},
                    loop(k, kRows, kSerial, std::move(body)));
}

// Returns a number that takes several divisions.
Expr pace(const ir::BufferPtr& sizes) {
  const Expr size = ir::load(sizes, {constant(1)});
  Expr sum = constant(0);
  for (const int64_t divisor : {3, 5, 7, 11})
    sum = sum + ir::min(ir::floordiv(size, divisor), constant(2));
  return sum;
}

TEST(fixed_loads, what_depends_on_sizes_alone_is_not_in_the_inner_loop) {
  const auto sizes = ir::make_buffer("sizes", DType::kI64, {4});
  const ir::Program program = rows_at(sizes, pace(sizes), ir::Role::kInput);
  EXPECT_EQ(compare_with_interpreter(program, 1), "");
  for (const char* device : {"x86-64-avx2", "aarch64-neon"}) {
    const InnerLoop plain = inner_loop_of(rows_at(sizes, constant(3), ir::Role::kInput), device);
    const InnerLoop made = inner_loop_of(program, device);
    EXPECT_LE(made.text.size(), plain.text.size() + 1) << device;
  }
}

TEST(fixed_loads, more_numbers_than_registers_hold_are_loaded_where_they_are_used) {
  const auto sizes = ir::make_buffer("sizes", DType::kI64, {40});
  Expr sum = constant(0);
  for (int64_t i = 0; i < 40; ++i) sum = sum + ir::floordiv(ir::load(sizes, {constant(i)}), i + 2);
  EXPECT_EQ(compare_with_interpreter(rows_at(sizes, sum, ir::Role::kInput), 2), "");
}

TEST(fixed_loads, a_quotient_stays_under_the_condition_that_the_divisor_is_not_0) {
  const auto n = ir::make_buffer("n", DType::kI64, {1});
  const auto y = ir::make_buffer("y", DType::kI64, {kRows});
  const auto k = ir::make_var("k");
  const Expr divisor = ir::load(n, {constant(0)});
  const Expr quotient = ir::make(ir::Op::kFloorDiv, {variable(k), divisor});
  const Expr value = ir::select(ir::less(constant(0), divisor), quotient, constant(7));
  const ir::Program program =
      program_of({{n, ir::Role::kInput}, {y, ir::Role::kOutput}},
                 loop(k, kRows, kSerial, {ir::make_store(y, {variable(k)}, value)}));
  for (const target::Target& target : runnable_targets()) {
    for (const int64_t number : {0, 5}) {
      std::vector<Tensor> args = {Tensor(DType::kI64, {1}), Tensor(DType::kI64, {kRows})};
      args[0].set(0, static_cast<double>(number));
      const Status status = run_machine_code(program, target, args);
      ASSERT_TRUE(status.ok()) << status.message();
      for (int64_t i = 0; i < kRows; ++i)
        EXPECT_EQ(args[1].at(i), static_cast<double>(number == 0 ? 7 : i / number)) << i;
    }
  }
}

// The place of a step is what the step before left there.
TEST(fixed_loads, numbers_that_the_loop_changes_are_read_again) {
  const auto sizes = ir::make_buffer("sizes", DType::kI64, {4});
  const Expr next = ir::floormod(ir::load(sizes, {constant(1)}) + 1, 5);
  const ir::Program program = rows_at(sizes, ir::load(sizes, {constant(1)}), ir::Role::kOutput,
                                      {ir::make_store(sizes, {constant(1)}, next)});
  EXPECT_EQ(compare_with_interpreter(program, 3), "");
}

}  // namespace
}  // namespace hone::backend::cpu
