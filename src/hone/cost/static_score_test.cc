#include "hone/cost/static_score.h"

#include <gtest/gtest.h>

#include <set>

#include "hone/base/rng.h"

namespace hone::cost {
namespace {

size_t num_features() { return static_feature_names().size(); }

// Samples whose times are a sum with known coefficients, of which some are zero.
std::vector<StaticSample> samples_of(const std::vector<double>& coefficients) {
  std::vector<StaticSample> samples;
  Rng rng(5);
  for (int s = 0; s < 200; ++s) {
    StaticSample sample{.features = {}, .seconds = 0, .ghz = s % 2 == 0 ? 2.0 : 4.0};
    for (size_t i = 0; i < num_features(); ++i) {
      sample.features.push_back(static_cast<double>(1 + rng.below(1000)));
      sample.seconds += coefficients[i] * sample.features[i] * 1e-9 / sample.ghz;
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

StaticScore some_score() {
  StaticScore score{"x86_64 with 512 bits", std::vector<double>(num_features(), 0.5), {}};
  score.coefficients[0] = 1.0 / 3;
  score.card["device"] = "two words";
  return score;
}

TEST(static_score, finds_the_coefficients_of_a_sum) {
  std::vector<double> coefficients(num_features(), 0);
  coefficients[0] = 0.5, coefficients[3] = 1.25, coefficients[7] = 0.75;
  const std::vector<StaticSample> samples = samples_of(coefficients);
  const std::vector<double> fitted = fit_static(samples);
  for (size_t i = 0; i < num_features(); ++i)
    EXPECT_NEAR(fitted[i], coefficients[i], 1e-3) << static_feature_names()[i];
  const StaticScore score{"", fitted, {}};
  EXPECT_NEAR(score.seconds(samples[0].features, samples[0].ghz), samples[0].seconds,
              1e-3 * samples[0].seconds);
}

TEST(static_score, has_no_negative_coefficients) {
  std::vector<double> coefficients(num_features(), 1);
  coefficients[2] = -0.5;
  for (const double fitted : fit_static(samples_of(coefficients))) EXPECT_GE(fitted, 0);
}

TEST(static_score, is_fitted_without_what_is_left_out) {
  const auto options = parse_static_options("counts=0,shared=0");
  ASSERT_TRUE(options.ok()) << options.status().message();
  const std::vector<double> ones(num_features(), 1);
  const std::vector<double> fitted = fit_static(samples_of(ones), *options);
  const std::set<std::string_view> left_out = {"fma",       "arithmetic", "load",   "store",
                                               "shuffle",   "scalar",     "branch", "l1_shared",
                                               "l2_shared", "l3_shared"};
  for (size_t i = 0; i < num_features(); ++i) {
    const std::string_view name = static_feature_names()[i];
    EXPECT_EQ(fitted[i] == 0, left_out.contains(name)) << name;
  }
  EXPECT_FALSE(parse_static_options("counts=2").ok());
  EXPECT_FALSE(parse_static_options("leaves=3").ok());
}

TEST(static_score, its_text_gives_it_back) {
  const StaticScore score = some_score();
  const auto parsed = parse_static(format(score), "a.model");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->instruction_set, score.instruction_set);
  EXPECT_EQ(parsed->coefficients, score.coefficients);
  EXPECT_EQ(parsed->card, score.card);
  EXPECT_TRUE(is_static_score(format(score)));
}

TEST(static_score, refuses_other_versions_and_damage) {
  const std::string text = format(some_score());
  const auto message = [](std::string changed, const std::string& from, const std::string& to) {
    changed.replace(changed.find(from), from.size(), to);
    const auto parsed = parse_static(changed, "a.model");
    return parsed.ok() ? std::string() : parsed.status().message();
  };
  EXPECT_EQ(message(text, "score 1", "score 9"),
            "a.model: found 'hone static score 9', expected 'hone static score 1': fit it anew "
            "(hone train --cost static)");
  EXPECT_NE(message(text, "version 2", "version 1").find("of version 1', expected"),
            std::string::npos);
  EXPECT_NE(message(text, "store 0.5", "store -1").find("store"), std::string::npos);
  EXPECT_NE(message(text, "load ", "lead ").find("coefficient of 'load'"), std::string::npos);
}

}  // namespace
}  // namespace hone::cost
