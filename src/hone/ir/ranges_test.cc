#include "hone/ir/ranges.h"

#include <gtest/gtest.h>

namespace hone::ir {
namespace {

const VarPtr kI = make_var("i"), kJ = make_var("j"), kN = make_var("n");
const Expr kVi = variable(kI), kVj = variable(kJ), kVn = variable(kN);

Ranges small_ranges() {
  Ranges r;
  r.bind(kI, {0, 7});
  r.bind(kJ, {-2, 3});
  return r;
}

TEST(linear, collects_terms_in_canonical_order) {
  const Linear a = linearize((kVj * 2 + kVi * 3) - (kVi - 4) * 2);
  EXPECT_EQ(a.constant, 8);
  ASSERT_EQ(a.terms.size(), 2U);
  EXPECT_EQ(a.coefficient(kI), 1);
  EXPECT_EQ(a.coefficient(kJ), 2);
  EXPECT_TRUE(equal(to_expr(a), kVi + kVj * 2 + 8));
  EXPECT_TRUE(equal(to_expr(linearize(kVj * 2 + kVi)), to_expr(linearize(kVi + kVj * 2))));
}

TEST(linear, terms_that_cancel_vanish) {
  EXPECT_TRUE(linearize(kVi * 3 - kVi - kVi * 2).is_constant());
  EXPECT_TRUE(is_const_int(to_expr(linearize(kVi + 5 - kVi)), 5));
}

TEST(linear, negative_terms_are_subtracted) {
  EXPECT_TRUE(equal(to_expr(linearize(kVj - kVi - 3)), kVj - kVi - 3));
  EXPECT_TRUE(equal(to_expr(linearize(constant(7) - kVi)), constant(7) - kVi));
  EXPECT_TRUE(equal(to_expr(linearize(constant(0) - kVi)), kVi * -1));
}

TEST(linear, overflow_stays_inside_an_atom) {
  const Expr huge = (kVi * INT64_MAX) * 3;
  const Linear form = linearize(huge);
  ASSERT_EQ(form.terms.size(), 1U);
  EXPECT_TRUE(equal(form.terms[0].first, huge));
}

TEST(ranges, intervals_of_index_expressions) {
  const Ranges r = small_ranges();
  EXPECT_EQ(r.of(kVi * 4 - kVj), (Interval{-3, 30}));
  EXPECT_EQ(r.of(floordiv(kVj, 2)), (Interval{-1, 1}));
  EXPECT_EQ(r.of(floormod(kVi, 4)), (Interval{0, 3}));
  EXPECT_EQ(r.of(floormod(kVi + 8, 16)), (Interval{8, 15}));
  EXPECT_EQ(r.of(min(kVi, constant(5))), (Interval{0, 5}));
  EXPECT_EQ(r.of(max(kVj, kVi)), (Interval{0, 7}));
  EXPECT_EQ(r.of(make(Op::kMul, {kVi, kVj})), (Interval{-14, 21}));
  EXPECT_EQ(r.of(select(less(kVi, kVj), kVi, kVj)), (Interval{-2, 7}));
  EXPECT_EQ(r.of(kVi + kVn), (Interval{kNegInf, kPosInf}));
  EXPECT_EQ(r.of(cast(DType::kI64, load(make_buffer("b", DType::kU8, {8}), {kVi}))),
            (Interval{0, 255}));
}

TEST(ranges, conditions_tighten_intervals_until_reset) {
  Ranges r = small_ranges();
  const auto mark = r.mark();
  r.assume(logical_and(less(kVi * 2, constant(9)), less_equal(constant(1), kVi)));
  EXPECT_EQ(r.of(kI), (Interval{1, 4}));
  r.assume(make(Op::kEq, {kVj, constant(2)}));
  EXPECT_TRUE(r.of(kJ).is_point());
  r.reset(mark);
  EXPECT_EQ(r.of(kI), (Interval{0, 7}));
  r.assume(make(Op::kOr, {less(kVi, constant(2)), less(constant(5), kVi)}), false);
  EXPECT_EQ(r.of(kI), (Interval{2, 5}));
}

TEST(ranges, facts_prove_what_intervals_cannot) {
  Ranges r = small_ranges();
  r.assume(less(kVi + kVn, constant(10)));
  EXPECT_TRUE(r.proves_nonnegative(linearize(constant(9) - kVi - kVn)));
  EXPECT_TRUE(r.proves_nonnegative(linearize(constant(18) - kVi * 2 - kVn * 2)));
  EXPECT_FALSE(r.proves_nonnegative(linearize(constant(8) - kVi - kVn)));
  EXPECT_TRUE(r.proves_nonnegative(linearize(constant(9) - kVn)));
}

TEST(ranges, loops_with_variable_bounds_leave_facts) {
  Ranges r;
  r.bind(kN, {0, 100});
  r.bind_loop(kI, kVn, constant(20) - kVn);
  EXPECT_TRUE(r.proves_nonnegative(linearize(kVi - kVn)));
  EXPECT_TRUE(r.proves_nonnegative(linearize(constant(19) - kVi)));
  EXPECT_TRUE(r.proves_nonnegative(linearize(constant(19) - kVn)))
      << "the body runs: the extent is positive";
  EXPECT_FALSE(r.proves_nonnegative(linearize(constant(18) - kVi)));
}

TEST(ranges, conditions_with_loads_say_nothing) {
  Ranges r = small_ranges();
  const Expr n = load(make_buffer("b", DType::kI64, {8}), {kVi});
  r.assume(less(kVi, n));
  EXPECT_TRUE(r.facts().empty());
}

}  // namespace
}  // namespace hone::ir
