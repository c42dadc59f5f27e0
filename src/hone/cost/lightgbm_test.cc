#include "hone/cost/lightgbm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"

namespace hone::cost {
namespace {

// x1 <= 0.1 ? (x0 <= -2.5 ? 1 : 2) : 3, and a tree that is a leaf.
constexpr const char* kText = R"(tree
version=v4
max_feature_idx=1

Tree=0
num_leaves=3
num_cat=0
split_feature=1 0
split_gain=2 1
threshold=0.10000000000000001 -2.5
decision_type=2 0
left_child=1 -1
right_child=-2 -3
leaf_value=1 3 2
is_linear=0
shrinkage=0.12


Tree=1
num_leaves=1
num_cat=0
split_feature=
threshold=
decision_type=
left_child=
right_child=
leaf_value=0.25
is_linear=0


end of trees

feature_importances:
Column_0=1
)";

double predict(const Trees& trees, std::vector<float> features) { return trees.predict(features); }

std::string replaced(std::string_view from, std::string_view to) {
  std::string text = kText;
  return text.replace(text.find(from), from.size(), to);
}

TEST(lightgbm_text, gives_the_trees) {
  const Result<Trees> trees = parse_lightgbm(kText, 2);
  ASSERT_TRUE(trees.ok()) << trees.status().message();
  EXPECT_EQ(trees->size(), 2U);
  EXPECT_EQ(predict(*trees, {-3, 0}), 1.25);
  EXPECT_EQ(predict(*trees, {-2.5F, 0}), 1.25);  // a value at the threshold goes left
  EXPECT_EQ(predict(*trees, {std::nextafter(-2.5F, 0.0F), 0}), 2.25);
  EXPECT_EQ(predict(*trees, {-3, 1}), 3.25);
}

TEST(lightgbm_text, thresholds_part_floats_as_doubles_do) {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    // Among them many that are floats, between two of them, and next to a double that is one.
    const auto nearest = static_cast<float>(std::ldexp(rng.uniform() - 0.5, i % 80 - 60));
    const double shifts[] = {0, 1e-9 * nearest, -1e-9 * nearest, 1e-16 * nearest};
    const double threshold = nearest + shifts[i % 4];
    const std::string text = replaced("0.10000000000000001", fmt::format("{:.17g}", threshold));
    const Trees trees = parse_lightgbm(text, 2).value();
    const float above = std::nextafter(nearest, INFINITY),
                below = std::nextafter(nearest, -INFINITY);
    for (const float x : {below, nearest, above}) {
      const double expected = static_cast<double>(x) <= threshold ? 1.25 : 3.25;
      EXPECT_EQ(predict(trees, {-3, x}), expected) << threshold << ' ' << x;
    }
  }
}

TEST(lightgbm_text, what_our_trees_cannot_say_is_refused) {
  const auto message = [](const std::string& text) {
    const Result<Trees> trees = parse_lightgbm(text, 2);
    return trees.ok() ? "parsed" : std::string(trees.status().message());
  };
  const auto expect = [&](const std::string& text, std::string_view what) {
    EXPECT_EQ(message(text), fmt::format("LightGBM wrote a model of an unknown form: {}", what));
  };
  EXPECT_EQ(message(kText), "parsed");
  expect("", "no first line 'tree'");
  expect(replaced("end of trees", "end"), "no line 'end of trees'");
  expect(replaced("decision_type=2 0", "decision_type=2 1"), "decision_type=1");  // categories
  expect(replaced("decision_type=2 0", "decision_type=8 2"), "decision_type=8");  // NaN
  expect(replaced("decision_type=2 0", "decision_type=2"),
         "1 numbers of decision_type, expected 2");
  expect(replaced("is_linear=0", "is_linear=1"), "is_linear=1");
  expect(replaced("split_feature=1 0", "split_feature=1 2"), "split_feature=2");
  expect(replaced("split_feature=1 0", "split_feature=1 x"), "split_feature=x");
  expect(replaced("-2.5", "1e300"), "the number 1e+300");
  expect(replaced("leaf_value=1 3 2", "leaf_value=1 nan 2"), "the number nan");
  expect(replaced("num_leaves=3", "num_leaves=0"), "num_leaves=0");
  for (const char* children : {"0 -1", "2 -1", "1 -4", "1 -2147483648", "-2 -1", "1 0"})
    EXPECT_NE(message(replaced("left_child=1 -1", fmt::format("left_child={}", children))),
              "parsed")
        << children;
}

class Lightgbm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!lightgbm_status().ok()) GTEST_SKIP() << lightgbm_status().message();
  }
};

// Counts, zeros, ties, values around LightGBM's zero, a constant and two large numbers.
TrainingRows make_rows() {
  TrainingRows rows;
  rows.width = 6;
  Rng rng(9);
  for (int i = 0; i < 700; ++i) {
    const auto a = static_cast<float>(rng.uniform() * 8 - 4);
    const auto b = static_cast<float>(rng.between(0, 5));
    const float c = rng.chance(0.7) ? 0 : a;
    const auto d = static_cast<float>((rng.uniform() - 0.5) * 4e-35);
    const float e = rng.chance(0.5) ? 3e37F : -1e30F;
    rows.features.insert(rows.features.end(), {a, b, c, d, e, 7});
    rows.target.push_back(a * b + (c > 1 ? 3 : 0) + (d > 0 ? 1 : 0) + (e > 0 ? 2 : 0));
    rows.weight.push_back(static_cast<float>(0.1 + 0.9 * rng.uniform()));
    rows.group.push_back(i % 7);
    rows.known.push_back(0);
  }
  return rows;
}

constexpr BoostOptions kOptions = {.rounds = 40,
                                   .depth = 5,
                                   .leaves = 0,
                                   .learning_rate = 0.3,
                                   .feature_share = 1,
                                   .min_leaf_weight = 2,
                                   .library = TreeLibrary::kLightgbm};

TEST_F(Lightgbm, our_trees_predict_what_it_does) {
  const TrainingRows rows = make_rows();
  Result<std::unique_ptr<Booster>> booster = make_lightgbm_booster(rows, kOptions);
  ASSERT_TRUE(booster.ok()) << booster.status().message();
  std::vector<float> gradient(rows.rows()), hessian = rows.weight;
  for (int round = 0; round < kOptions.rounds; ++round) {
    const std::span<const float> sums = (*booster)->predict().value();
    for (size_t i = 0; i < rows.rows(); ++i)
      gradient[i] = rows.weight[i] * (sums[i] - rows.target[i]);
    ASSERT_TRUE((*booster)->boost(gradient, hessian).ok());
  }
  const Trees trees = (*booster)->trees().value();
  EXPECT_EQ(trees.size(), static_cast<size_t>(kOptions.rounds));
  const std::span<const float> sums = (*booster)->predict().value();
  const std::span<const float> all = rows.features;
  double error = 0;
  for (size_t i = 0; i < rows.rows(); ++i) {
    const auto row =
        all.subspan(i * static_cast<size_t>(rows.width), static_cast<size_t>(rows.width));
    ASSERT_NEAR(trees.predict(row), sums[i], 1e-5) << i;
    error += std::abs(trees.predict(row) - rows.target[i]) / static_cast<double>(rows.rows());
  }
  EXPECT_LT(error, 0.5);  // a * b alone varies by some 5
}

TEST_F(Lightgbm, fits_the_same_from_the_same) {
  const Trees first = boost(make_rows(), kOptions).value();
  EXPECT_EQ(first, boost(make_rows(), kOptions).value());
  const Result<Trees> back = Trees::parse(first.format(), 6);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, first);
}

TEST_F(Lightgbm, what_cannot_be_split_is_no_error) {
  TrainingRows rows;
  rows.width = 2;
  for (int i = 0; i < 30; ++i) {
    rows.features.insert(rows.features.end(), {0, 1});
    rows.target.push_back(1);
    rows.weight.push_back(1);
    rows.group.push_back(0);
    rows.known.push_back(0);
  }
  const Result<Trees> trees = boost(rows, kOptions);
  ASSERT_TRUE(trees.ok()) << trees.status().message();
  EXPECT_EQ(predict(*trees, {0, 1}), 0);
}

TEST(tree_library, has_a_name) {
  EXPECT_EQ(parse_tree_library("xgboost").value(), TreeLibrary::kXgboost);
  EXPECT_EQ(parse_tree_library("lightgbm").value(), TreeLibrary::kLightgbm);
  EXPECT_EQ(parse_tree_library("wood").status().message(),
            "found 'wood', expected xgboost or lightgbm");
}

}  // namespace
}  // namespace hone::cost
