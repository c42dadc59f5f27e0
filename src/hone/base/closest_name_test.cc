#include "hone/base/closest_name.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(did_you_mean, finds_what_was_mistyped) {
  const std::vector<std::string> names = {"ids", "batch", "seq", "past_len", ""};
  EXPECT_EQ(did_you_mean("bacth", names), "; did you mean 'batch'?");
  EXPECT_EQ(did_you_mean("sqe", names), "; did you mean 'seq'?");
  EXPECT_EQ(did_you_mean("seqs", names), "; did you mean 'seq'?");
  EXPECT_EQ(did_you_mean("IDS", names), "; did you mean 'ids'?");
  EXPECT_EQ(did_you_mean("past_length", names), "; did you mean 'past_len'?");
  EXPECT_EQ(did_you_mean("pastlen", names), "; did you mean 'past_len'?");
}

TEST(did_you_mean, says_nothing_of_other_names) {
  const std::vector<std::string> names = {"ids", "batch", "x"};
  EXPECT_EQ(did_you_mean("seq", names), "");
  EXPECT_EQ(did_you_mean("y", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("batch", {"batch"}), "");
  EXPECT_EQ(did_you_mean("batch", {}), "");
  EXPECT_EQ(did_you_mean(std::string(300, 'b'), {std::string(301, 'b')}), "");
}

TEST(did_you_mean, takes_the_closest_and_the_first_of_those) {
  EXPECT_EQ(did_you_mean("input_2", {"input_13", "input_1", "input_3"}),
            "; did you mean 'input_1'?");
}

}  // namespace
}  // namespace hone
