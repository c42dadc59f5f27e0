#include "hone/ir/passes/hoist_functions.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/prefetch_testing.h"

namespace hone::ir {
namespace {

constexpr const char* kParams = R"(
  input x: f32[21, 32]
  input a: f32[32]
  input b: f32[21]
  output y: f32[21, 32]
  output z: f32[21, 32]
)";

Program parsed(const std::string& body) { return testing::parsed_block(kParams, body); }

// Returns how much is computed ahead, and expects the same results except for rounding.
int64_t hoisted(const std::string& body) {
  const Program before = parsed(body);
  const Program after = hoist_functions(before);
  testing::expect_same_results(before, after, 1e-6);
  return testing::count(after.phases[0].body, StmtKind::kAlloc);
}

TEST(hoist_functions, that_rows_share_are_computed_once) {
  EXPECT_EQ(hoisted(R"(
    for r in 0..21 { vectorized i in 0..32 { y[r, i] = x[r, i] * (1.0 / a[i]) } })"),
            1);
  EXPECT_EQ(hoisted(R"(
    for r in 0..21 {
      vectorized i in 0..32 {
        y[r, i] = (x[r, i] - exp(a[i])) / sqrt(a[i] * a[i] + 1.0)
        z[r, i] = x[r, i] * exp(a[i])
      }
    })"),
            2);
}

TEST(hoist_functions, under_a_condition_stay_under_it) {
  EXPECT_EQ(hoisted(R"(
    for r in 0..21 { vectorized i in 0..40 { if i < 32 { y[r, i] = x[r, i] / exp(a[i]) } } })"),
            1);
  EXPECT_EQ(hoisted(R"(
    for r in 0..21 { vectorized i in 0..32 { if i < r { y[r, i] = x[r, i] / exp(a[i]) } } })"),
            0);
}

TEST(hoist_functions, that_change_or_are_one_for_all_lanes_stay) {
  const char* const kValues[] = {
      "exp(x[r, i])",                               // another row, another value
      "x[r, i] / a[i]",                             //
      "x[r, i] * exp(b[r])",                        // one for all lanes
      "x[r, i] * a[i]",                             // soon done
      "select(x[r, i] < 0.5, exp(a[i]), x[r, i])",  // perhaps not wanted
  };
  for (const char* value : kValues) {
    EXPECT_EQ(
        hoisted(std::string("for r in 0..21 { vectorized i in 0..32 { y[r, i] = ") + value + "} }"),
        0)
        << value;
  }
  // An operand that the loop itself stores is not computed ahead.
  EXPECT_EQ(hoisted(R"(
    vectorized i in 0..32 { y[0, i] = a[i] }
    for r in 1..21 { vectorized i in 0..32 { y[r, i] = 0.5 * exp(y[0, i]) } })"),
            0);
}

}  // namespace
}  // namespace hone::ir
