#include "option_texts.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TEST(option_texts, shapes_are_kept_by_input) {
  const auto shapes = parse_shapes({"image=1x3x224x224", "mask=1,128"});
  ASSERT_TRUE(shapes.ok()) << shapes.status().message();
  EXPECT_EQ(*shapes,
            (std::map<std::string, Shape>{{"image", {1, 3, 224, 224}}, {"mask", {1, 128}}}));
}

TEST(option_texts, a_run_has_one_size_which_may_be_0) {
  EXPECT_EQ(parse_shapes({"past=0", "x=1x0"}).value(),
            (std::map<std::string, Shape>{{"past", {0}}, {"x", {1, 0}}}));
  EXPECT_EQ(parse_shapes({"h=3..9"}).status().message(),
            "--shape h: found the range '3..9', expected one size of each dimension, as a run of a "
            "library has");
}

TEST(option_texts, an_error_begins_with_the_option) {
  const std::pair<Status, std::string> cases[] = {
      {parse_shapes({"1x3"}).status(), "--shape: found '1x3', expected NAME=VALUE"},
      {parse_shapes({"a=1", "a=2"}).status(), "--shape: 'a' is given twice"},
      {parse_threads("-1").status(), "--threads: found '-1', expected an integer from 0 to 1024"},
      {parse_max_memory("0").status(), "--max-memory: '0' is no number of bytes"},
      {parse_max_memory("-1M").status(), "--max-memory: '-1M' is no number of bytes"},
      {parse_max_memory("9999999999G").status(), "--max-memory: '9999999999G' is no number of"},
      {parse_seed("x").status(), "--seed: found 'x'"},
      {parse_count("--repeat", "0", 1, 9).status(),
       "--repeat: found '0', expected an integer from 1 to 9"},
  };
  for (const auto& [status, text] : cases) {
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_TRUE(status.message().starts_with(text)) << status.message();
  }
  EXPECT_TRUE(
      parse_shapes({"a=1x-1"}).status().message().starts_with("--shape a: '1x-1' is not a shape"));
}

TEST(option_texts, bound_integers_are_exact) {
  const auto bound = parse_bound({"n=9007199254740993", "m=-9007199254740993", "k=7", "x=1e300"});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  ASSERT_EQ(bound->at("n").dtype(), DType::kI64);
  EXPECT_EQ(bound->at("n").as<int64_t>()[0], 9007199254740993);
  ASSERT_EQ(bound->at("m").dtype(), DType::kI64);
  EXPECT_EQ(bound->at("m").as<int64_t>()[0], -9007199254740993);
  EXPECT_EQ(bound->at("k").dtype(), DType::kF64);
  EXPECT_EQ(bound->at("k").at(0), 7);
  EXPECT_EQ(bound->at("x").at(0), 1e300);
}

}  // namespace
}  // namespace hone::tool
