#include "hone/ir/in_place.h"

#include <gtest/gtest.h>

#include "hone/ir/parser.h"

namespace hone::ir {
namespace {

// "a>y b>y": the pairs of a program of f32[4] inputs a, b and outputs y, z with this phase.
std::string pairs_of(std::string_view phase, std::string_view shape_of_a = "f32[4]") {
  const Result<Program> program =
      parse_program("program \"p\" {\n  input a: " + std::string(shape_of_a) +
                    "\n  input b: f32[4]\n  output y: f32[4]\n  output z: f32[4]\n  phase {\n" +
                    std::string(phase) + "  }\n}\n");
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return "";
  std::string text;
  for (const InPlacePair& pair : in_place_pairs(*program)) {
    text += (text.empty() ? "" : " ") + program->params[pair.input].buffer->name + ">" +
            program->params[pair.output].buffer->name;
  }
  return text;
}

TEST(in_place, elements_that_are_read_where_they_are_written) {
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[i] + b[i]\n }\n"), "a>y b>y");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[i] * a[i] + b[3 - i]\n }\n"), "a>y");
  // Two statements for different elements, as a peeled loop has them.
  EXPECT_EQ(pairs_of("for i in 0..3 {\n y[i] = a[i] + 1.0\n }\n y[3] = a[3]\n"), "a>y");
}

TEST(in_place, not_what_is_read_again) {
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[3 - i]\n }\n"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[i] + a[0]\n }\n"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[i]\n z[i] = a[i]\n }\n"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n if a[i] < 1.0 {\n y[i] = a[i]\n }\n }\n"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = b[i]\n }\n for k in 0..4 {\n z[k] = b[3 - k]\n }\n"),
            "");
}

TEST(in_place, not_an_output_that_is_read_or_stored_to_for_another_reason) {
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = 0.0\n y[i] = y[i] + a[i]\n }\n"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = 0.0\n }\n for k in 0..4 {\n y[k] = a[k]\n }\n"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[i]\n z[i] = y[i]\n }\n"), "");
}

TEST(in_place, not_what_boxes_read_or_write) {
  const auto with = [](std::string_view box) {
    return pairs_of("alloc shared s: f32[4] {\n alloc signal g: i64[1] arrivals 1 {\n" +
                    std::string(box) + "\n thread t in 0..4 {\n y[t] = a[t]\n }\n }\n }\n");
  };
  EXPECT_EQ(with("copy s[0 : 4] = b[0 : 4], g[0]"), "a>y");
  EXPECT_EQ(with("copy s[0 : 4] = a[0 : 4], g[0]"), "");
  EXPECT_EQ(with("copy y[0 : 4] = s[0 : 4], g[0]"), "");
}

TEST(in_place, not_another_shape_or_type) {
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = a[i]\n }\n", "f32[5]"), "");
  EXPECT_EQ(pairs_of("for i in 0..4 {\n y[i] = f32(a[i])\n }\n", "i32[4]"), "");
}

}  // namespace
}  // namespace hone::ir
