#include <gtest/gtest.h>

#include "hone/backend/cpu/test_support.h"
#include "hone/backend/operator_programs_testing.h"

namespace hone::backend::cpu {
namespace {

using ir::constant;
using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::variable;
using testing::OperatorProgram;

void expect_right(const OperatorProgram& p) {
  ASSERT_EQ(compare_with_interpreter(p.program, p.seed, p.tolerance), "");
}
void expect_right(const std::vector<OperatorProgram>& programs) {
  for (const OperatorProgram& p : programs) expect_right(p);
}

TEST(compile, every_operator_of_every_type) {
  for (const int64_t n : {1, 5, 21}) expect_right(testing::operator_programs(n, kVector));
  expect_right(testing::operator_programs(5, kSerial));  // the same code for any extent
}

TEST(compile, signs_of_zeros) {
  for (const int64_t n : {3, 21}) {
    for (const ForKind kind : {kVector, kSerial}) expect_right(testing::signs_of_zeros(n, kind));
  }
}

TEST(compile, bits_as_another_type) {
  for (const ForKind kind : {kVector, kSerial}) expect_right(testing::bit_programs(19, kind));
}

TEST(compile, casts_between_all_types) {
  for (const ForKind kind : {kVector, kSerial}) expect_right(testing::cast_programs(19, kind));
}

TEST(compile, indices_that_are_not_contiguous) {
  const auto x = ir::make_buffer("x", DType::kF32, {40, 40});
  const auto table = ir::make_buffer("t", DType::kI64, {40});
  const auto y = ir::make_buffer("y", DType::kF32, {40, 40});
  const auto i = ir::make_var("i");
  const auto v = ir::make_var("v");
  const Expr vi = variable(v);
  const Expr ii = variable(i);
  for (const int64_t n : {3, 8, 13, 16, 19, 40}) {
    const std::vector<std::vector<Expr>> reads = {
        {vi, ii},
        {ii, constant(39) - vi},
        {ii, ir::floordiv(vi, 3)},
        {ir::floormod(vi, 4), ii},
        {ii, ir::load(table, {vi})},
        {ir::load(table, {ii}), vi},
        {ir::floordiv(vi * 2 + ii, 3), ir::floormod(vi * 2 + ii, 3)},
        {ii, ir::min(vi, ii)},
        {ir::max(vi + (-5), constant(0)), ii},
        {ii, ir::make(ir::Op::kFloorMod, {vi, ii + 1})}};
    for (const auto& read : reads) {
      for (const bool transposed : {false, true}) {
        const std::vector<Expr> write =
            transposed ? std::vector<Expr>{vi, ii} : std::vector<Expr>{ii, vi};
        const Stmt nest =
            loop(i, 40, kSerial,
                 {loop(v, n, kVector, {ir::make_store(y, write, ir::load(x, read) + 1)})});
        ASSERT_EQ(compare_with_interpreter(program_of({{x, ir::Role::kInput},
                                                       {table, ir::Role::kInput},
                                                       {y, ir::Role::kOutput}},
                                                      nest),
                                           10),
                  "");
      }
    }
  }
}

}  // namespace
}  // namespace hone::backend::cpu
