#include "hone/base/shape_texts.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

std::string text_of(const ShapeRange& range) {
  std::string text;
  for (const DimRange& dim : range)
    text += dim.symbol.empty() ? fmt::format("{}..{} ", dim.min, dim.max) : dim.symbol + " ";
  return text;
}

TEST(shape_texts, extents_are_numbers_ranges_and_symbols) {
  ModelOptions options;
  const Status status = parse_shape_ranges({"x=1..8x3x224x224", "y=2x4", "ids=batchxseq",
                                            "mask=batch,max_seq", "seq=1..512", "past=0..4"},
                                           options);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(options.shapes, (std::map<std::string, Shape>{{"y", {2, 4}}}));
  EXPECT_EQ(text_of(options.ranges["x"]), "1..8 3..3 224..224 224..224 ");
  EXPECT_EQ(text_of(options.ranges["ids"]), "batch seq ");
  EXPECT_EQ(text_of(options.ranges["mask"]), "batch max_seq ");
  EXPECT_EQ(text_of(options.ranges["seq"]), "1..512 ");
  EXPECT_EQ(text_of(options.ranges["past"]), "0..4 ");
  EXPECT_EQ(options.ranges.size(), 5u);
}

TEST(shape_texts, one_size_may_be_0) {
  ModelOptions options;
  ASSERT_TRUE(parse_shape_ranges({"past=0"}, options).ok());
  EXPECT_EQ(options.shapes["past"], Shape{0});
}

TEST(shape_texts, a_range_that_is_none_is_named) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"x=8..1x3"},
       "--shape x: the range 8..1 has no number: its ends are reversed, expected 1..8"},
      {{"x=1..x3"}, "--shape x: found the extent '1..', expected a number, a range such as 1..8"},
      {{"x=..8"}, "--shape x: found the extent '..8'"},
      {{"x=1..2..3"}, "--shape x: found the extent '1..2..3'"},
      {{"x=1..0x3x8"},
       "--shape x: found the extent '1..0', expected a number, a range such as 1..8"},
      {{"batch=a..b"}, "--shape batch: found the extent 'a..b'"},
      {{"x=0..0"}, "--shape x: found the extent '0..0'"},
      {{"x=1.5"}, "--shape x: found the extent '1.5'"},
      {{"x=2x0"}, "--shape x: '2x0' is not a shape"},
      {{"x=1..2", "x=3"}, "--shape: 'x' is given twice"},
      {{"x"}, "--shape: found 'x', expected NAME=VALUE"},
  };
  for (const auto& [texts, message] : cases) {
    ModelOptions options;
    const Status status = parse_shape_ranges(texts, options);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_TRUE(status.message().starts_with(message)) << status.message();
  }
}

}  // namespace
}  // namespace hone
