#include "hone/ir/passes/share_windows.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/simplify.h"

namespace hone::ir {
namespace {

constexpr const char* kParams = R"(
  input x: f32[6, 24, 16]
  input f: f32[3, 3]
  input n: i64[6]
  output a: f32[4, 8, 16]
)";

// a[h, w, v] = value for points and taps, in the order of the loops named.
std::string window(const std::string& loops, const std::string& value) {
  std::string body, ends;
  for (const char loop : loops) {
    ends += " }";
    switch (loop) {
      case 'y': body += "unrolled kh in 0..3 {"; break;
      case 'x': body += "unrolled kw in 0..3 {"; break;
      case 'Y': body += "for kh in 0..3 {"; break;
      case 'X': body += "for kw in 0..3 {"; break;
      case 'h': body += "unrolled h in 0..2 {"; break;
      case 'w': body += "unrolled w in 0..4 {"; break;
      default: body += "if h + kh < 3 {"; break;
    }
  }
  return body + " vectorized v in 0..16 { a[h, w, v] = " + value + " }" + ends;
}
const char* const kSum = "a[h, w, v] + x[kh + h, kw + w, v]";

// Returns the program after the pass. It must be valid and compute the same except for the rounding
// of sums.
std::string shared(const std::string& body, double tolerance = 1e-6) {
  const Program before = testing::parsed_block(kParams, body);
  const Program after = simplify(share_windows(before));
  testing::expect_same_results(before, after, tolerance);
  return print(after);
}
std::string as_it_was(const std::string& body) {
  return print(simplify(testing::parsed_block(kParams, body)));
}

TEST(share_windows, points_side_by_side_share_columns) {
  const std::string text = shared(window("xyhw", kSum));
  EXPECT_NE(text.find("(x[h, kw + w, v] + x[h + 1, kw + w, v] + x[h + 2, kw + w, v])"), text.npos)
      << text;
  EXPECT_EQ(text.find("unrolled kh"), text.npos) << text;
  EXPECT_LT(text.find("unrolled w"), text.find("unrolled kw")) << "a point's columns" << text;
}

TEST(share_windows, points_below_each_other_share_rows) {
  const std::string text = shared(
      "for w in 0..8 { unrolled kh in 0..3 { unrolled kw in 0..3 { "
      "unrolled h in 0..4 { vectorized v in 0..16 { a[h, w, v] = "
      "a[h, w, v] + x[kh + h, kw + w, v] } } } } }");
  EXPECT_EQ(text.find("unrolled kw"), text.npos) << text;
  EXPECT_NE(text.find("unrolled kh"), text.npos) << text;
}

TEST(share_windows, maxima_are_the_same_bit_by_bit) {
  const std::string body = window("yxw", "max(x[kh, kw + w, v], a[0, w, v])");
  std::string of_one_row = body;
  of_one_row.replace(of_one_row.find("a[h, w, v] ="), 12, "a[0, w, v] =");
  const std::string text = shared(of_one_row, 0);
  // A NaN in the first term is passed over, as in the others.
  EXPECT_NE(text.find("max(x[1, kw + w, v], max(x[0, kw + w, v], -inf))"), text.npos) << text;
}

TEST(share_windows, taps_that_a_guard_depends_on_stay) {
  const std::string text = shared(window("xyhiw", kSum));
  EXPECT_EQ(text.find("unrolled kw"), text.npos) << text;
  EXPECT_LT(text.find("unrolled kh"), text.find("if h + kh < 3")) << text;
}

TEST(share_windows, what_would_gain_nothing_stays) {
  const std::string kept[] = {
      window("xyhw", "a[h, w, v] + x[kh + h, kw + w, v] * f[kh, kw]"),  // a product
      window("xyhw", "a[h, w, v] + x[kh + h * 3, kw + w * 3, v]"),      // windows lie apart
      window("Xyhw", kSum),  // no column in straight code
      window("xYhw", kSum),
      window("xyhw", "a[h, w, v] + x[n[kh] % 3, kw + w, v]"),  // who knows
      window("xyhw", "a[h, w, v] - x[kh + h, kw + w, v]"),
      window("xyhw", "a[0, w, v] + x[kh + h, kw + w, v]"),  // another element
  };
  for (const std::string& body : kept) EXPECT_EQ(shared(body), as_it_was(body)) << body;
}

}  // namespace
}  // namespace hone::ir
