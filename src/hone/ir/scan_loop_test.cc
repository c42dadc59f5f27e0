#include "hone/ir/scan_loop.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

// Returns whether find_scan() finds one in the loop over n, which is the last one outside unrolled
// ones.
bool scan_of(const std::string& steps) {
  const Program program = testing::parsed(R"(program rows {
  input x: f32[4, 6]
  input m: i64[6]
  output y: f32[4, 6]
  output z: i64[6]
  phase {
    alloc stack p: i64[1] { alloc stack s: f32[4] { alloc stack t: f32[4] {
      for i in 0..2 { for n in 0..6 {
)" + steps + "}\n } } } } } }\n");
  const Stmt* s = &program.phases[0].body;
  while ((*s)->var == nullptr || (*s)->var->name != "n") s = &(*s)->body[0];
  return find_scan(**s).has_value();
}

TEST(scan_loop, running_sums_and_products_and_what_reads_them) {
  EXPECT_TRUE(scan_of("s[0] = s[0] + x[i, n]  y[i, n] = s[0]"));
  EXPECT_TRUE(scan_of("y[i, n] = s[0]  s[0] = s[0] - x[i, n]"));
  EXPECT_TRUE(scan_of("p[0] = m[5 - n] * p[0]  z[5 - n] = p[0] + 1"));
  EXPECT_TRUE(scan_of("unrolled r in 0..2 { s[r] = s[r] + x[r, n]  y[r, n] = s[r] }"));
  EXPECT_TRUE(scan_of("unrolled r in 0..2 { if i < 1 { s[r] = s[r] + x[r, n]  y[r, n] = s[r] } }"));
}

TEST(scan_loop, nothing_else_is_carried_between_steps) {
  EXPECT_FALSE(scan_of("s[0] = max(s[0], x[i, n])  y[i, n] = s[0]")) << "neither sum nor product";
  EXPECT_FALSE(scan_of("s[0] = x[i, n] * s[0]  y[i, n] = s[0]")) << "0 times infinity";
  EXPECT_FALSE(scan_of("unrolled r in 0..2 { s[0] = s[0] + x[r, n]  y[r, n] = s[0] }"))
      << "twice a step";
  EXPECT_FALSE(
      scan_of("unrolled q in 0..2 { unrolled r in 0..2 { s[q + r] = s[q + r] + x[r, n] "
              " y[r, n] = s[q + r] } }"));
  EXPECT_FALSE(scan_of("s[0] = s[0] * 0.5 + x[i, n]  y[i, n] = s[0]")) << "both";
  EXPECT_FALSE(scan_of("s[0] = s[0] + y[i, n]  y[i, n] = s[0]")) << "reads what it wrote";
  EXPECT_FALSE(scan_of("s[0] = s[0] + x[i, n]  y[i, n] = s[1]")) << "another element";
  EXPECT_FALSE(scan_of("s[n % 4] = s[n % 4] + x[i, n]  y[i, n] = s[0]"));
  EXPECT_FALSE(scan_of("s[0] = s[0] + x[i, n]  y[i, 0] = s[0]")) << "the last step's stays";
  EXPECT_FALSE(scan_of("s[0] = s[0] + x[i, n]  y[i, m[n]] = s[0]")) << "anywhere";
  EXPECT_FALSE(scan_of("s[0] = s[0] + x[i, n]  t[0] = t[0] + s[0]  y[i, n] = t[0]"));
  EXPECT_FALSE(scan_of("if n < 3 { s[0] = s[0] + x[i, n] }  y[i, n] = s[0]"));
  EXPECT_FALSE(scan_of("for k in 0..2 { s[0] = s[0] + x[i, n] }  y[i, n] = s[0]"));
  EXPECT_FALSE(scan_of("y[i, n] = x[i, n]"));
  EXPECT_FALSE(scan_of("s[0] = s[0] + x[i, n]")) << "a sum, of which only the end is read";
  EXPECT_FALSE(scan_of("s[0] = s[0] + x[i, n]  y[i, n] = x[i, n]"));
}

TEST(scan_loop, an_extreme_may_keep_nan) {
  const auto x = make_buffer("x", DType::kF32, {4}), s = make_buffer("s", DType::kF32, {1});
  const Expr element = load(x, {constant(2)}), old = load(s, {constant(0)});
  const auto op_of = [&](const Expr& value) {
    return reduction_op(*make_store(s, {constant(0)}, value));
  };
  const Expr is_nan = make(Op::kNe, {element, element});
  const Expr kept = select(is_nan, element, max(element, old));
  EXPECT_EQ(op_of(kept), Op::kMax);
  EXPECT_TRUE(is_nan_or_extreme(kept));
  EXPECT_EQ(op_of(max(element, old)), Op::kMax);
  EXPECT_FALSE(is_nan_or_extreme(max(element, old)));
  for (const Expr& other : {select(is_nan, old, max(element, old)), select(is_nan, element, old),
                            select(make(Op::kNe, {old, old}), old, max(old, element)),
                            select(make(Op::kEq, {element, element}), element, max(element, old))})
    EXPECT_EQ(op_of(other), std::nullopt);
}

}  // namespace
}  // namespace hone::ir
