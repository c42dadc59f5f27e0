#include "hone/search/correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"

namespace hone::search {
namespace {

std::vector<float> random_decisions(Rng& rng) {
  std::vector<float> decisions(5);
  for (float& d : decisions) d = static_cast<float>(rng.uniform());
  return decisions;
}
// A model that is wrong by a factor and in two of the decisions.
double truth(const std::vector<float>& d) {
  return 0.7 + 0.8 * d[0] - 1.2 * (d[3] - 0.4) * (d[3] - 0.4);
}

TEST(correction, stays_neutral_until_enough_was_measured) {
  Correction correction;
  Rng rng(1);
  for (size_t i = 0; i + 1 < Correction::kMinimum; ++i)
    correction.add(0, random_decisions(rng), 1.0);
  correction.fit();
  EXPECT_EQ(correction.estimate(0, random_decisions(rng)).log_factor, 0);
}

TEST(correction, learns_a_smooth_error_of_the_model) {
  Correction correction;
  Rng rng(2);
  for (int i = 0; i < 60; ++i) {
    const std::vector<float> d = random_decisions(rng);
    correction.add(0, d, truth(d));
  }
  correction.fit();
  double error = 0, spread = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<float> d = random_decisions(rng);
    error += std::pow(correction.estimate(0, d).log_factor - truth(d), 2);
    spread += std::pow(truth(d) - 1.05, 2);
  }
  EXPECT_LT(error, 0.1 * spread);
}

TEST(correction, is_surer_near_what_was_measured) {
  Correction correction;
  Rng rng(3);
  std::vector<float> known;
  for (int i = 0; i < 30; ++i) {
    known = {static_cast<float>(rng.uniform() * 0.2), 0, 0, 0, 0};
    correction.add(0, known, truth(known));
  }
  correction.fit();
  const std::vector<float> far = {1, 1, 1, 1, 1};
  EXPECT_LT(correction.estimate(0, known).deviation, 0.5 * correction.estimate(0, far).deviation);
}

TEST(correction, shares_only_the_level_between_sketches) {
  Correction correction;
  Rng rng(4);
  for (int i = 0; i < 30; ++i) correction.add(0, random_decisions(rng), 1.0);
  correction.fit();
  const std::vector<float> other = {0.5, 0.5};
  EXPECT_NEAR(correction.estimate(1, other).log_factor, 1.0, 0.05);
}

}  // namespace
}  // namespace hone::search
