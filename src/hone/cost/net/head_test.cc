#include "hone/cost/net/head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"
#include "hone/cost/net/builder.h"
#include "hone/cost/net/head_fit.h"
#include "hone/cost/net/net_testing.h"

namespace hone::cost::net {
namespace {

TEST(net_head, other_weights_change_the_score_by_their_products_with_it) {
  for (const Family* family : families()) {
    Net net = make_net(*family, small_inputs(), narrow(*family)).value();
    initialise(net, 3);
    const NetBatch batch = random_batch(net, 4, 7);
    const Result<Net> lifted = with_head(net);
    ASSERT_TRUE(lifted.ok()) << family->name << ": " << lifted.status().message();
    const auto before = evaluate(*lifted, batch);
    EXPECT_EQ(before[0], evaluate(net, batch)[0]) << family->name;
    ASSERT_EQ(lifted->outputs.back().name, kHeadOutput);
    Parameter& layer = *net.find_parameter("head.weight");
    const auto columns = static_cast<size_t>(layer.dims[1]);
    std::vector<double> change;
    for (size_t k = 0; k < layer.values.size(); k += columns) {
      change.push_back(0.1 * std::sin(1.0 + static_cast<double>(k)));
      layer.values[k] += static_cast<float>(change.back());
    }
    const auto after = evaluate(net, batch);
    const std::vector<float>& head = before.back();
    ASSERT_EQ(head.size(), 4 * change.size()) << family->name;
    for (size_t row = 0; row < 4; ++row) {
      double expected = before[0][row];
      for (size_t k = 0; k < change.size(); ++k)
        expected += change[k] * static_cast<double>(head[row * change.size() + k]);
      EXPECT_NEAR(after[0][row], expected, 1e-4 * (1 + std::abs(expected))) << family->name;
    }
  }
}

TEST(net_head, refuses_a_score_that_no_weights_are_linear_in) {
  NetBuilder b("bent", small_inputs());
  const Value weight = b.parameter("head.weight", {6, 1}, {Fill::kXavier});
  b.output("score", b.tanh(b.matmul(b.input("task"), weight)));
  EXPECT_EQ(with_head(b.finish()).status().message(),
            "the score of bent is not linear in any layer's weights");
}

// Schedules of several tasks whose net knows the sum of the first half of its inputs, but not that
// the last one counts, too.
std::vector<HeadSample> make_samples(int tasks, int each, uint64_t seed, double unknown) {
  Rng rng(seed);
  std::vector<HeadSample> samples;
  for (int task = 0; task < tasks; ++task) {
    const double level = rng.normal();
    for (int i = 0; i < each; ++i) {
      HeadSample sample{.task = static_cast<uint64_t>(task)};
      for (int k = 0; k < 8; ++k) sample.head.push_back(static_cast<float>(rng.normal()));
      for (int k = 0; k < 4; ++k) sample.score += static_cast<double>(sample.head[k]);
      const double all = sample.score + unknown * static_cast<double>(sample.head[7]);
      sample.seconds = std::exp(level - 0.2 * all + 0.02 * rng.normal());
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

// The share of pairs of a task that are in the right order.
double pairs(const std::vector<HeadSample>& samples, const HeadFit& fit) {
  int right = 0, all = 0;
  for (const HeadSample& a : samples) {
    for (const HeadSample& b : samples) {
      if (a.task != b.task || a.seconds >= b.seconds) continue;
      ++all;
      right += a.score + fit.change(a.head) > b.score + fit.change(b.head) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / all;
}

TEST(head_fit, learns_what_the_last_layer_gets_wrong) {
  const std::vector<HeadSample> known = make_samples(10, 60, 1, 3),
                                others = make_samples(4, 30, 2, 3);
  HeadFit fit(0.2);
  EXPECT_EQ(fit.change(known[0].head), 0);
  const double before = pairs(others, fit);
  EXPECT_LT(before, 0.75);
  for (const HeadSample& sample : known) fit.add(sample);
  fit.fit();
  EXPECT_GT(pairs(others, fit), 0.9);
}

TEST(head_fit, few_samples_change_little_and_what_is_right_stays) {
  const std::vector<HeadSample> few = make_samples(1, 4, 1, 3), right = make_samples(5, 60, 1, 0);
  HeadFit little(0.2), none(0.2);
  for (const HeadSample& sample : few) little.add(sample);
  for (const HeadSample& sample : right) none.add(sample);
  little.fit(), none.fit();
  for (const HeadSample& sample : right) {
    EXPECT_LT(std::abs(little.change(sample.head)), 1.5);  // a deviation of 3 is missing
    EXPECT_LT(std::abs(none.change(sample.head)), 0.1);
  }
}

TEST(head_fit, keeps_the_newest_and_does_the_same_again) {
  const std::vector<HeadSample> old = make_samples(1, 500, 1, -3),
                                fresh = make_samples(1, HeadFit::kMaximum, 2, 3);
  HeadFit both(0.2), alone(0.2);
  for (const HeadSample& sample : old) both.add(sample);
  for (const HeadSample& sample : fresh) both.add(sample), alone.add(sample);
  EXPECT_EQ(both.samples(), HeadFit::kMaximum);
  both.fit(), alone.fit();
  EXPECT_EQ(both.change(fresh[0].head), alone.change(fresh[0].head));
}

TEST(head_fit, survives_inputs_that_do_not_vary_and_a_single_sample) {
  HeadFit fit(0.2);
  fit.fit();
  fit.add({.task = 1, .seconds = 1e-3, .score = 2, .head = {1, 0, 5}});
  fit.fit();
  EXPECT_EQ(fit.change(std::vector<float>{1, 2, 3}), 0);
  fit.add({.task = 1, .seconds = 2e-3, .score = 2, .head = {1, 0, 4}});
  fit.fit();
  EXPECT_TRUE(std::isfinite(fit.change(std::vector<float>{9, 9, 9})));
  EXPECT_GT(fit.change(std::vector<float>{0, 0, 5}), fit.change(std::vector<float>{0, 0, 4}));
}

}  // namespace
}  // namespace hone::cost::net
