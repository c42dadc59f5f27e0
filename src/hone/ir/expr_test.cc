#include "hone/ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

const Expr kX = variable(make_var("x"));
const Expr kY = variable(make_var("y"));
const BufferPtr kBuffer = make_buffer("b", DType::kF32, {8});

TEST(expr, folds_integer_constants) {
  EXPECT_TRUE(is_const_int(constant(3) + constant(4), 7));
  EXPECT_TRUE(is_const_int(constant(3) - constant(4), -1));
  EXPECT_TRUE(is_const_int(floordiv(constant(-7), 2), -4));
  EXPECT_TRUE(is_const_int(floormod(constant(-7), 2), 1));
  EXPECT_TRUE(is_const_int(constant(-7) / constant(2), -3));
  EXPECT_TRUE(is_const_int(min(constant(3), constant(4)), 3));
  EXPECT_TRUE(is_true(less(constant(3), constant(4))));
  EXPECT_TRUE(is_false(less_equal(constant(5), constant(4))));
}

TEST(expr, folds_identities_of_integers) {
  EXPECT_EQ(kX + 0, kX);
  EXPECT_EQ(constant(0) + kX, kX);
  EXPECT_EQ(kX * 1, kX);
  EXPECT_TRUE(is_const_int(kX * 0, 0));
  EXPECT_EQ(floordiv(kX, 1), kX);
  EXPECT_TRUE(is_const_int(floormod(kX, 1), 0));
  EXPECT_TRUE(equal((kX + 2) + 3, kX + 5));
  EXPECT_TRUE(equal(constant(2) + kX, kX + 2));
}

TEST(expr, division_by_zero_is_left_alone) {
  EXPECT_EQ(floordiv(constant(1), 0)->op, Op::kFloorDiv);
  EXPECT_EQ(floormod(constant(1), 0)->op, Op::kFloorMod);
}

TEST(expr, float_times_zero_stays_because_of_nan) {
  const Expr value = load(kBuffer, {kX});
  EXPECT_EQ((value * 0)->op, Op::kMul);
  EXPECT_EQ(value * 1, value);
}

// -0 + 0 and -0 - -0 are +0, so that only -0 may be added, and only 0 taken away.
TEST(expr, float_plus_zero_stays_because_of_signs) {
  const Expr value = load(kBuffer, {kX});
  const Expr plus = constant_float(0.0), minus = constant_float(-0.0);
  EXPECT_EQ((value + plus)->op, Op::kAdd);
  EXPECT_EQ((plus + value)->op, Op::kAdd);
  EXPECT_EQ((value - minus)->op, Op::kSub);
  EXPECT_EQ((plus - value)->op, Op::kSub);
  EXPECT_EQ(value + minus, value);
  EXPECT_EQ(minus + value, value);
  EXPECT_EQ(value - plus, value);
  EXPECT_EQ(value / constant_float(1), value);
  EXPECT_EQ((minus + plus)->float_value, 0);
  EXPECT_FALSE(std::signbit((minus + plus)->float_value));
}

TEST(expr, logic_folds_with_constants) {
  const Expr c = less(kX, kY);
  EXPECT_EQ(logical_and(constant_bool(true), c), c);
  EXPECT_TRUE(is_false(logical_and(c, constant_bool(false))));
  EXPECT_TRUE(is_true(make(Op::kOr, {c, constant_bool(true)})));
  EXPECT_EQ(make(Op::kNot, {make(Op::kNot, {c})}), c);
  EXPECT_EQ(select(constant_bool(false), kX, kY), kY);
  EXPECT_EQ(select(c, kX, kX), kX);
}

TEST(expr, constants_are_rounded_to_their_type) {
  EXPECT_EQ(constant_float(0.1)->float_value, static_cast<double>(0.1F));
  EXPECT_EQ(constant_float(0.1, DType::kF64)->float_value, 0.1);
  EXPECT_EQ(constant_int(300, DType::kU8)->int_value, 44);
  EXPECT_EQ(cast(DType::kI8, constant(200))->int_value, -56);
}

TEST(expr, float_casts_saturate) {
  EXPECT_EQ(cast(DType::kI32, constant_float(-1.9))->int_value, -1);
  EXPECT_EQ(cast(DType::kU8, constant_float(300))->int_value, 255);
  EXPECT_EQ(cast(DType::kU8, constant_float(-3))->int_value, 0);
  EXPECT_EQ(float_to_int(DType::kI64, 1e30), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(float_to_int(DType::kI32, std::nan("")), 0);
}

TEST(expr, small_floats_round_to_nearest_even) {
  EXPECT_EQ(round_float(DType::kF16, 65504.0), 65504.0);
  EXPECT_EQ(round_float(DType::kF16, 65520.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round_float(DType::kF16, 2049.0), 2048.0);
  EXPECT_EQ(round_float(DType::kF16, 2051.0), 2052.0);
  EXPECT_EQ(round_float(DType::kF16, 0x1p-25), 0.0);
  EXPECT_EQ(round_float(DType::kF16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(round_float(DType::kBF16, 257.0), 256.0);
  EXPECT_EQ(round_float(DType::kBF16, 259.0), 260.0);
}

TEST(expr, min_and_max_return_the_second_operand_of_nan) {
  const double nan = std::nan("");
  EXPECT_EQ(apply_binary(Op::kMax, nan, 2.0), 2.0);
  EXPECT_TRUE(std::isnan(apply_binary(Op::kMax, 2.0, nan)));
  EXPECT_EQ(apply_binary(Op::kMin, nan, 2.0), 2.0);
}

TEST(expr, the_largest_integers_have_no_sign) {
  const Expr huge = constant_int(-1, DType::kU64);
  const Expr one = constant_int(1, DType::kU64);
  EXPECT_TRUE(is_true(less(one, huge)));
  EXPECT_EQ(min(huge, one)->int_value, 1);
  EXPECT_EQ((huge / constant_int(2, DType::kU64))->int_value, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(make(Op::kRem, {huge, constant_int(10, DType::kU64)})->int_value, 5);
  EXPECT_EQ(make(Op::kAbs, {huge})->int_value, -1);
  EXPECT_EQ(cast(DType::kF64, huge)->float_value, 0x1p64);
  EXPECT_EQ(cast(DType::kU64, constant_float(0x1p63))->int_value,
            std::numeric_limits<int64_t>::min());
}

TEST(expr, integers_become_floats_in_one_rounding) {
  // In two it would be a tie after the first, and one less.
  const int64_t i = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(cast(DType::kF32, constant(i))->float_value, 0x1.000002p60);
}

TEST(expr, remainders_have_the_sign_of_the_dividend) {
  EXPECT_EQ(make(Op::kRem, {constant(-7), constant(3)})->int_value, -1);
  EXPECT_EQ(make(Op::kRem, {constant(7), constant(-1)})->int_value, 0);
  EXPECT_EQ(make(Op::kRem, {constant_float(-7.5), constant_float(2)})->float_value, -1.5);
}

TEST(expr, bits_are_kept) {
  EXPECT_EQ(bit_cast(DType::kI32, constant_float(-1.0))->int_value, -0x40800000);
  EXPECT_EQ(bit_cast(DType::kF32, constant_int(0x40490fdb, DType::kU32))->float_value,
            static_cast<double>(3.14159274F));
  EXPECT_EQ(bit_cast(DType::kU16, constant_float(-2, DType::kF16))->int_value, 0xC000);
  EXPECT_EQ(bit_cast(DType::kF64, constant(0x3FF0000000000000))->float_value, 1.0);
  EXPECT_EQ(bit_cast(DType::kI8, constant_int(200, DType::kU8))->int_value, -56);
}

TEST(expr, check_operands_names_the_types) {
  const Expr f = load(kBuffer, {kX});
  EXPECT_EQ(check_operands(Op::kAdd, {kX, f}).message(), "'add' of i64 and f32");
  EXPECT_EQ(check_operands(Op::kAdd, {kX}).message(), "'add' has 1 operands, expected 2");
  EXPECT_EQ(check_operands(Op::kExp, {kX}).message(), "'exp' of i64, expected a float");
  EXPECT_EQ(check_operands(Op::kSelect, {kX, f, f}).message(),
            "the condition of select is i64, expected bool");
  EXPECT_FALSE(check_operands(Op::kFloorDiv, {f, f}).ok());
  EXPECT_FALSE(check_operands(Op::kAdd, {less(kX, kY), less(kX, kY)}).ok());
  EXPECT_TRUE(check_operands(Op::kNeg, {kX}).ok());
}

TEST(expr, equality_is_structural_with_identity_of_variables) {
  EXPECT_TRUE(equal(kX * 2 + kY, kX * 2 + kY));
  EXPECT_FALSE(equal(kX * 2 + kY, kX * 2 + variable(make_var("y"))));
  EXPECT_FALSE(equal(constant_float(0.0), constant_float(-0.0)));
  EXPECT_TRUE(equal(constant_float(std::nan("1")), constant_float(-std::nan("2"))));
}

TEST(expr, substitution_folds_on_the_way) {
  const VarPtr i = make_var("i");
  const Expr e = variable(i) * 4 + kY;
  EXPECT_TRUE(equal(substitute(e, {{i, constant(0)}}), kY));
  EXPECT_EQ(substitute(e, {{make_var("i"), constant(0)}}), e);
}

}  // namespace
}  // namespace hone::ir
