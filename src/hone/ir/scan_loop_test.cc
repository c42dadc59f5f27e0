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

}  // namespace
}  // namespace hone::ir
