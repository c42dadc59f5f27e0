#include "hone/search/agent/mlp.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::search {
namespace {

double loss_of(const Mlp& net, std::span<const float> input) {
  double loss = 0;
  for (const float y : net.run(input)) loss += 0.5 * static_cast<double>(y) * y;
  return loss;
}

TEST(mlp, gradients_are_those_of_finite_differences) {
  for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
    Rng rng(3);
    Mlp net({4, 7, 5, 3}, activation, rng);
    const std::vector<float> input = {0.4F, -0.3F, 0.9F, 0.1F};
    const Mlp::Trace trace = net.trace(input);
    net.backward(trace, trace.back());
    const std::vector<double> gradient(net.gradient().begin(), net.gradient().end());
    const std::vector<float> weights(net.weights().begin(), net.weights().end());
    constexpr float kStep = 1e-3F;
    for (size_t i = 0; i < weights.size(); ++i) {
      std::vector<float> moved = weights;
      moved[i] += kStep;
      net.set_weights(moved);
      const double above = loss_of(net, input);
      moved[i] -= 2 * kStep;
      net.set_weights(moved);
      const double below = loss_of(net, input);
      EXPECT_NEAR((above - below) / (2 * kStep), gradient[i], 2e-3 + 1e-2 * std::abs(gradient[i]))
          << i;
    }
  }
}

TEST(mlp, learns_a_function_that_is_not_linear) {
  Rng rng(5);
  Mlp net({2, 16, 16, 1}, Activation::kRelu, rng);
  const auto wanted = [](float x, float y) { return x * y > 0 ? 1.0F : -1.0F; };
  for (int step = 0; step < 600; ++step) {
    for (int i = 0; i < 16; ++i) {
      const std::vector<float> input = {static_cast<float>(rng.uniform() * 2 - 1),
                                        static_cast<float>(rng.uniform() * 2 - 1)};
      const Mlp::Trace trace = net.trace(input);
      const float error = trace.back()[0] - wanted(input[0], input[1]);
      net.backward(trace, std::span(&error, 1));
    }
    net.step(5e-3, 16);
  }
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<float> input = {static_cast<float>(rng.uniform() * 2 - 1),
                                      static_cast<float>(rng.uniform() * 2 - 1)};
    right += net.run(input)[0] * wanted(input[0], input[1]) > 0;
  }
  EXPECT_GT(right, 180);
}

TEST(mlp, a_gradient_that_is_not_finite_changes_nothing) {
  Rng rng(5);
  Mlp net({2, 3, 1}, Activation::kTanh, rng);
  const std::vector<float> input = {0.5F, -0.5F};
  const std::string before = net.save();
  for (const float by_output : {INFINITY, NAN, 1.0F}) {
    net.backward(net.trace(input), std::span(&by_output, 1));
    net.step(0.1, 1);
    EXPECT_EQ(net.save() == before, !std::isfinite(by_output)) << by_output;
  }
  EXPECT_TRUE(std::isfinite(net.run(input)[0]));
}

TEST(mlp, inputs_that_begin_alike_give_what_each_gives_by_itself) {
  Rng rng(9);
  const Mlp net({5, 6, 4, 2}, Activation::kRelu, rng);
  const std::vector<float> begin = {0.3F, -0.8F, 0.5F};
  const std::vector<std::vector<float>> rest = {{1, 2}, {-1, 0.5F}, {0, 0}};
  const std::vector<float> found = net.run_each(begin, rest);
  ASSERT_EQ(found.size(), rest.size());
  for (size_t i = 0; i < rest.size(); ++i) {
    std::vector<float> input = begin;
    input.insert(input.end(), rest[i].begin(), rest[i].end());
    EXPECT_NEAR(found[i], net.run(input)[0], 1e-5) << i;
  }
}

TEST(mlp, text_keeps_every_bit_and_only_text_of_the_same_shape_is_read) {
  Rng rng(7), other_rng(8);
  const Mlp net({3, 4, 2}, Activation::kTanh, rng);
  Mlp other({3, 4, 2}, Activation::kTanh, other_rng);
  const std::string text = net.save();
  ASSERT_TRUE(other.load(text).ok());
  EXPECT_EQ(other.save(), text);
  const std::string before = other.save();
  Mlp wider({3, 5, 2}, Activation::kTanh, rng);
  EXPECT_NE(wider.load(text).message().find("net of another shape than 'net 3 5 2'"),
            std::string::npos);
  std::string broken = text;
  broken.back() = 'g';
  EXPECT_NE(other.load(broken).message().find("is no weight of a net"), std::string::npos);
  broken.replace(text.rfind(' ') + 1, 8, "7fc00000");  // not a number
  EXPECT_FALSE(other.load(broken).ok());
  EXPECT_FALSE(other.load("").ok());
  EXPECT_FALSE(other.load(text + "0").ok());
  EXPECT_EQ(other.save(), before);
}

}  // namespace
}  // namespace hone::search
