#include "hone/ir/passes/skip_neutral.h"

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

using testing::expect_same_results;
using testing::parsed_block;

// Two rows of a window over a column of x, a row of padding at each end, for two vectors.
Program window(const std::string& update, const std::string& initial) {
  return parsed_block(
      "input x: f32[4, 2, 8]\n output y: f32[5, 2, 8]\n",
      "for row in 0..5 { alloc register a: f32[2, 8] {\n"
      "unrolled c in 0..2 { vectorized l in 0..8 { a[c, l] = " +
          initial +
          " } }\n"
          "for k in 0..2 { unrolled c in 0..2 { vectorized l in 0..8 {\n"
          "a[c, l] = " +
          update +
          " } } }\n"
          "unrolled c in 0..2 { vectorized l in 0..8 { y[row, c, l] = a[c, l] } } } }");
}
const std::string kInside = "select(1 <= row + k && row + k < 5, x[row + k - 1, c, l], ";

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(skip_neutral, one_test_stands_around_all_vectors_of_a_point) {
  for (const auto& [update, initial] : {std::pair("max(a[c, l], " + kInside + "-inf))", "-inf"),
                                        std::pair("min(" + kInside + "inf), a[c, l])", "inf"),
                                        std::pair("a[c, l] + " + kInside + "0.0)", "0.0")}) {
    const Program before = window(update, initial), after = skip_neutral(before);
    const std::string text = print(after);
    EXPECT_EQ(count(text, "select("), 0U) << text;
    EXPECT_EQ(count(text, "if "), 1U) << text;
    EXPECT_LT(text.find("if "), text.find("unrolled c", text.find("for k"))) << text;
    expect_same_results(before, after);
  }
}

TEST(skip_neutral, the_test_passes_the_guard_of_a_tail) {
  const auto tail = [](const std::string& update) {
    return parsed_block("input x: f32[4, 13]\n output y: f32[5, 16]\n",
                        "for row in 0..5 { alloc register a: f32[2, 8] {\n"
                        "unrolled c in 0..2 { vectorized l in 0..8 { a[c, l] = -inf } }\n"
                        "for k in 0..2 { unrolled c in 0..2 { vectorized l in 0..8 {\n"
                        "if c * 8 + l < 13 { a[c, l] = " +
                            update +
                            " } } } }\n"
                            "unrolled c in 0..2 { vectorized l in 0..8 { y[row, c * 8 + l] = "
                            "a[c, l] } } } }");
  };
  const Program before =
      tail("max(a[c, l], select(1 <= row + k && row + k < 5, x[row + k - 1, c * 8 + l], -inf))");
  const Program after = skip_neutral(before);
  const std::string text = print(after);
  EXPECT_NE(text.find("if 1 <= row + k && row + k < 5 {"), std::string::npos) << text;
  EXPECT_NE(text.find("if c_1 * 8 + l_1 < 13 {"), std::string::npos) << text;
  expect_same_results(before, after);
}

TEST(skip_neutral, leaves_what_is_no_such_step) {
  const std::string not_steps[] = {
      "max(a[c, l], " + kInside + "0.0))",                        // changes something
      "a[c, l] * " + kInside + "1.0)",                            // no such operation
      "max(a[1 - c, l], " + kInside + "-inf))",                   // reads another element
      "max(a[c, l], select(l < 3 + k, x[row % 4, c, l], -inf))",  // differs between lanes
  };
  for (const std::string& update : not_steps) {
    const Program before = window(update, "1.0");
    EXPECT_EQ(print(skip_neutral(before)), print(before));
  }
}

}  // namespace
}  // namespace hone::ir
