#include "hone/trial/accuracy.h"

#include <gtest/gtest.h>

namespace hone::trial {
namespace {

TEST(accuracy, names_round_trip) {
  for (const Accuracy accuracy : {Accuracy::kStrict, Accuracy::kDefault, Accuracy::kFast})
    EXPECT_EQ(parse_accuracy(accuracy_name(accuracy)), accuracy);
  EXPECT_EQ(accuracy_name(Accuracy::kFast), "fast");
  EXPECT_FALSE(parse_accuracy("exact"));
  EXPECT_FALSE(parse_accuracy(""));
}

TEST(accuracy, that_of_steps_is_what_the_least_accurate_one_needs) {
  EXPECT_EQ(accuracy_of(""), Accuracy::kStrict);
  EXPECT_EQ(accuracy_of("split(winograd, i, [4])"), Accuracy::kStrict) << "a name";
  EXPECT_EQ(accuracy_of("inline(relu)\nwinograd(conv2d, 4)\n"), Accuracy::kDefault);
  EXPECT_EQ(accuracy_of("strassen(gemm)"), Accuracy::kDefault);
  EXPECT_EQ(accuracy_of("narrow(weight.cache, bf16)\nstrassen(gemm)"), Accuracy::kFast);
}

TEST(accuracy, that_of_an_algorithm_is_in_its_name) {
  for (const auto& [name, accuracy] : {std::pair{"direct", Accuracy::kStrict},
                                       {"im2col", Accuracy::kStrict},
                                       {"winograd_4", Accuracy::kDefault},
                                       {"strassen", Accuracy::kDefault},
                                       {"direct_bf16", Accuracy::kFast},
                                       {"winograd_4_bf16", Accuracy::kFast}})
    EXPECT_EQ(accuracy_of_algorithm(name), accuracy) << name;
  EXPECT_TRUE(rounds_more("winograd_4_bf16"));
  EXPECT_FALSE(rounds_more("direct_bf16"));
  EXPECT_TRUE(is_narrow("winograd_4_bf16"));
  EXPECT_FALSE(is_narrow("winograd_4"));
}

}  // namespace
}  // namespace hone::trial
