// Tests the options of boosting; what trees learn is tested in trees_test.cc and
// gbdt_model_test.cc.
#include "hone/cost/boosting.h"

#include <gtest/gtest.h>

namespace hone::cost {
namespace {

TEST(boost_options, change_what_they_name_and_nothing_else) {
  BoostOptions before;
  before.depth = 7;
  const Result<BoostOptions> options =
      parse_boost_options("trees=300,leaves=0,rate=0.2,gain=0.003,pairs=0,leaf_weight=2", before);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->rounds, 300);
  EXPECT_EQ(options->leaves, 0);
  EXPECT_EQ(options->learning_rate, 0.2);
  EXPECT_EQ(options->min_gain, 0.003);
  EXPECT_EQ(options->pairs, 0);
  EXPECT_EQ(options->min_leaf_weight, 2);
  EXPECT_EQ(options->depth, 7);
  EXPECT_EQ(options->value_trees, before.value_trees);
  EXPECT_EQ(options->feature_share, before.feature_share);
  EXPECT_EQ(parse_boost_options("", before)->depth, 7);
}

TEST(boost_options, what_is_none_of_them_is_refused_by_its_name) {
  for (const auto& [text, said] : {std::pair{"wood=1", "unknown option 'wood'"},
                                   {"trees=0", "trees: "},
                                   {"trees=2.5", "trees: "},
                                   {"rate=fast", "rate: "},
                                   {"rate=2", "rate: "},
                                   {"features=0", "features: "},
                                   {"leaves=1", "leaves: found 1"},
                                   {"gain=nan", "gain: "}}) {
    const Result<BoostOptions> options = parse_boost_options(text, {});
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_TRUE(options.status().message().starts_with(said)) << options.status().message();
  }
}

TEST(boost_options, help_shows_defaults_that_are_options) {
  std::string all;
  for (const std::string& line : boost_option_help()) {
    EXPECT_NE(line.find(": "), std::string::npos) << line;
    all += (all.empty() ? "" : ",") + line.substr(0, line.find(": "));
  }
  BoostOptions other;
  other.rounds = 1, other.depth = 1, other.learning_rate = 1, other.pairs = 1;
  const Result<BoostOptions> options = parse_boost_options(all, other);
  ASSERT_TRUE(options.ok()) << all << ": " << options.status().message();
  const BoostOptions defaults;
  EXPECT_EQ(options->rounds, defaults.rounds);
  EXPECT_EQ(options->depth, defaults.depth);
  EXPECT_EQ(options->learning_rate, defaults.learning_rate);
  EXPECT_EQ(options->pairs, defaults.pairs);
}

}  // namespace
}  // namespace hone::cost
