#include "hone/cost/net/padding.h"

#include <gtest/gtest.h>

#include "hone/cost/net/builder.h"
#include "hone/cost/net/layers.h"
#include "hone/cost/net/net_testing.h"

namespace hone::cost::net {
namespace {

Net finished(NetBuilder& b, Value score) {
  b.output("score", score);
  return b.finish();
}

Net weighed(NetBuilder& b, Value tokens) {
  const Value sum = masked_sum(b, tokens, b.input("mask"));
  return finished(b, linear(b, "head", sum, 1));
}

TEST(net_padding, has_no_effect_in_families_that_name_no_single_token) {
  for (const Family* family : families()) {
    const Net net = make_net(*family, small_inputs(), narrow(*family)).value();
    EXPECT_EQ(find_token_axes(net).has_value(), family->name != "lstm") << family->name;
  }
  GivenOptions options = narrow(kAtformer);
  options["mask"] = 0;  // statements attend to padding
  EXPECT_FALSE(find_token_axes(make_net(kAtformer, small_inputs(), options).value()));
}

TEST(net_padding, tokens_are_followed_through_attention) {
  NetBuilder b("test", small_inputs());
  const Value mask = b.input("mask");
  const Value tokens = linear(b, "embed", b.input("statements"), 8);
  const Value attended = attention(b, "attention", tokens, 2, attention_mask(b, mask), 0);
  const Net net = weighed(b, attended);
  const std::optional<TokenAxes> axes = find_token_axes(net);
  ASSERT_TRUE(axes);
  int place = -1;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    if (net.inputs[i].name == "mask") place = static_cast<int>(i);
  }
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const std::vector<int>& node = (*axes)[i];
    if (net.nodes[i].op == Op::kSoftmax) {
      EXPECT_EQ(node, (std::vector{-1, -1, place, place}));
    }
    if (net.nodes[i].op == Op::kParameter) {
      EXPECT_EQ(node, std::vector(node.size(), -1));
    }
  }
  EXPECT_EQ(axes->back(), (std::vector{-1, -1}));
}

TEST(net_padding, what_it_reaches_is_noticed) {
  const auto found = [](const auto& make) {
    NetBuilder b("test", small_inputs());
    return find_token_axes(make(b)).has_value();
  };
  const auto sum = [](NetBuilder& b, Value tokens) {
    return finished(b, linear(b, "head", b.reduce_sum(tokens, 1), 1));
  };
  // A sum has padding if a value is not masked, or is masked and then shifted.
  EXPECT_FALSE(found([&](NetBuilder& b) {
    (void)b.input("mask");
    return sum(b, b.input("statements"));
  }));
  EXPECT_TRUE(found([&](NetBuilder& b) {
    return sum(b, b.relu(masked(b, b.input("statements"), b.input("mask"))));
  }));
  EXPECT_FALSE(found([&](NetBuilder& b) {
    return sum(b, b.add(masked(b, b.input("statements"), b.input("mask")), b.scalar(1)));
  }));
  EXPECT_FALSE(found([&](NetBuilder& b) {
    return sum(b, b.exp(masked(b, b.input("statements"), b.input("mask"))));
  }));
  // A mean divides by their number, a slice names them, a vector has a number for each.
  EXPECT_FALSE(found([&](NetBuilder& b) {
    const Value tokens = masked(b, b.input("statements"), b.input("mask"));
    return finished(b, linear(b, "head", b.reduce_mean(tokens, 1), 1));
  }));
  EXPECT_FALSE(found([&](NetBuilder& b) {
    return sum(b, b.slice(masked(b, b.input("statements"), b.input("mask")), 1, 0, 1));
  }));
  EXPECT_FALSE(
      found([&](NetBuilder& b) { return finished(b, linear(b, "head", b.input("mask"), 1)); }));
  // Reshaped so that they lie beside what they hold.
  EXPECT_FALSE(found([&](NetBuilder& b) {
    const Value tokens = masked(b, b.input("statements"), b.input("mask"));
    return finished(b, linear(b, "head", b.reshape(tokens, {-1, 36}), 1));
  }));
  // Without tokens there is nothing to leave out.
  EXPECT_FALSE(
      found([&](NetBuilder& b) { return finished(b, linear(b, "head", b.input("task"), 1)); }));
}

}  // namespace
}  // namespace hone::cost::net
