#include <gtest/gtest.h>

#include <cmath>

#include "hone/cost/net/family.h"
#include "hone/cost/net/net_testing.h"
#include "hone/cost/net/padding.h"

namespace hone::cost::net {
namespace {

Net narrow_net(const Family& family) {
  Result<Net> net = make_net(family, small_inputs(), narrow(family));
  EXPECT_TRUE(net.ok()) << net.status().message();
  initialise(*net, 3);
  return std::move(net).value();
}

size_t input_place(const Net& net, std::string_view name) {
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    if (net.inputs[i].name == name) return i;
  }
  return net.inputs.size();
}

TEST(families, score_each_candidate_by_itself) {
  for (const Family* family : families()) {
    const Net net = narrow_net(*family);
    EXPECT_EQ(net.family, family->name);
    EXPECT_NE(net.find_output("score"), nullptr);
    const NetBatch batch = random_batch(net, 3, 11);
    const std::vector<std::vector<float>> together = evaluate(net, batch);
    ASSERT_EQ(together[0].size(), 3U) << family->name;
    EXPECT_NE(together[0][0], together[0][1]) << family->name;
    NetBatch last{.rows = 1};
    for (size_t i = 0; i < net.inputs.size(); ++i) {
      const auto size = element_count(net.inputs[i].dims);
      last.inputs.emplace_back(batch.inputs[i].end() - size, batch.inputs[i].end());
    }
    const std::vector<std::vector<float>> alone = evaluate(net, last);
    for (size_t o = 0; o < together.size(); ++o) EXPECT_EQ(together[o][2], alone[o][0]);
  }
}

TEST(families, what_padding_holds_changes_nothing) {
  for (const Family* family : families()) {
    const Net net = narrow_net(*family);
    const NetBatch batch = random_batch(net, 4, 5);
    NetBatch other = batch;
    int64_t changed = 0;
    for (const char* name : {"statements", "tags", "steps", "graph_nodes", "graph_edges"}) {
      const size_t place = input_place(net, name);
      if (place == net.inputs.size()) continue;
      const size_t mask = static_cast<size_t>(mask_place(net, place));
      const auto width = static_cast<size_t>(net.inputs[place].dims[1]);
      for (size_t i = 0; i < batch.inputs[place].size(); ++i) {
        if (batch.inputs[mask][i / width] != 0) continue;
        other.inputs[place][i] = 100 - 3 * batch.inputs[place][i];
        ++changed;
      }
    }
    EXPECT_GT(changed, 0) << family->name;
    EXPECT_EQ(evaluate(net, batch), evaluate(net, other)) << family->name;
  }
}

TEST(families, atformer_without_a_mask_ignores_what_padding_holds_too) {
  Result<Net> net = make_net(kAtformer, small_inputs(), {{"hidden", 16}, {"mask", 0}});
  ASSERT_TRUE(net.ok());
  initialise(*net, 3);
  NetBatch batch = random_batch(*net, 1, 5);
  std::fill(batch.inputs[input_place(*net, "mask")].begin() + 1,
            batch.inputs[input_place(*net, "mask")].end(), 0.0F);
  NetBatch other = batch;
  std::vector<float>& rows = other.inputs[input_place(*net, "statements")];
  std::fill(rows.begin() + 9, rows.end(), 50.0F);
  EXPECT_EQ(evaluate(*net, batch), evaluate(*net, other));
}

TEST(families, read_no_tags_if_told_so) {
  for (const Family* family : {&kAtformer, &kLstm}) {
    for (const double tags : {0.0, 1.0}) {
      Result<Net> net = make_net(*family, small_inputs(), {{"hidden", 16}, {"tags", tags}});
      ASSERT_TRUE(net.ok()) << net.status().message();
      initialise(*net, 3);
      EXPECT_EQ(input_place(*net, "tags") < net->inputs.size(), tags == 1) << family->name;
      if (tags == 0) continue;
      NetBatch batch = random_batch(*net, 2, 5);
      const float before = evaluate(*net, batch)[0][0];
      batch.inputs[input_place(*net, "tags")][0] += 1;
      EXPECT_NE(evaluate(*net, batch)[0][0], before) << family->name;
    }
  }
}

TEST(families, have_the_sizes_of_their_papers) {
  const auto weights = [](const Family& family) {
    return make_net(family, small_inputs(), {})->num_weights();
  };
  // Per encoder layer of width 512: four projections, two layers inside, two norms.
  const int64_t layer = 6 * (512 * 512 + 512) + 4 * 512;
  EXPECT_EQ(weights(kAtformer), 19 * 512 + 512 + 512 * 512 + 512 + 2 * layer + 513);
  EXPECT_EQ(make_net(kFasor, small_inputs(), {})->outputs.size(), 4U);
  EXPECT_LT(weights(kSmall), 50'000);
}

TEST(families, fasor_scores_are_shares_and_its_score_is_less_time) {
  const Net net = narrow_net(kFasor);
  const std::vector<std::vector<float>> outputs = evaluate(net, random_batch(net, 5, 2));
  ASSERT_EQ(net.outputs[1].name, "time");
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(outputs[0][i], -outputs[1][i]);
    for (const size_t bound : {2, 3}) EXPECT_TRUE(outputs[bound][i] > 0 && outputs[bound][i] < 1);
  }
}

// A net of three heads: "head" says whose score counts.
TEST(families, have_a_head_for_each_device) {
  for (const Family* family : families()) {
    GivenOptions options = narrow(*family);
    options["devices"] = 3;
    Net net = make_net(*family, small_inputs(), options).value();
    initialise(net, 3);
    NetBatch batch = random_batch(net, 2, 7);
    std::vector<float>& rows = batch.inputs[input_place(net, "head")];
    const auto scores_of = [&](const std::vector<float>& head) {
      rows = head;
      rows.insert(rows.end(), head.begin(), head.end());
      return evaluate(net, batch)[0];
    };
    const std::vector<float> first = scores_of({1, 0, 0, 0}), second = scores_of({0, 1, 0, 0});
    const std::vector<float> both = scores_of({0.5, 0.5, 0, 9});
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NE(first[i], second[i]) << family->name;
      EXPECT_NEAR(both[i], (first[i] + second[i]) / 2, 1e-5 * (1 + std::abs(first[i])));
    }
    options["devices"] = 0;
    net = make_net(*family, small_inputs(), options).value();
    EXPECT_EQ(input_place(net, "head"), net.inputs.size()) << family->name;
  }
}

// The score falls by as much as the logarithm of its time grows, times 4 at first.
TEST(families, correct_the_analytic_model) {
  int found = 0;
  for (const Family* family : families()) {
    GivenOptions options = narrow(*family);
    if (!options.contains("analytic")) continue;
    ++found;
    const Net net = narrow_net(*family);
    const NetBatch batch = random_batch(net, 2, 7);
    NetBatch slower = batch;
    for (float& seconds : slower.inputs[input_place(net, "analytic")]) seconds += 0.5F;
    const std::vector<float> before = evaluate(net, batch)[0], after = evaluate(net, slower)[0];
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(before[i] - after[i], 2, 1e-4) << family->name;
    options["analytic"] = 0;
    EXPECT_EQ(input_place(*make_net(*family, small_inputs(), options), "analytic"),
              make_net(*family, small_inputs(), options)->inputs.size());
  }
  EXPECT_EQ(found, 6);
}

TEST(families, refuse_options_by_name_and_range) {
  const auto refused = [](const GivenOptions& given) {
    return make_net(kAtformer, small_inputs(), given).status().message();
  };
  EXPECT_EQ(refused({{"width", 5}}),
            "atformer has no option 'width', expected one of layers, hidden, heads, mask, dropout, "
            "task, measure, decisions, analytic, device, tags, devices");
  EXPECT_EQ(refused({{"layers", 0}}), "option layers=0: expected a whole number from 1 to 8");
  EXPECT_EQ(refused({{"layers", 1.5}}), "option layers=1.5: expected a whole number from 1 to 8");
  EXPECT_EQ(refused({{"hidden", 10}}), "4 heads do not divide hidden=10");
  EXPECT_FALSE(find_family("nothing").ok());
}

TEST(families, options_are_parsed) {
  const Result<GivenOptions> options = parse_options(kAtformer, "hidden=64,dropout=0.25");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(*options, (GivenOptions{{"hidden", 64}, {"dropout", 0.25}}));
  EXPECT_TRUE(parse_options(kMlp, "")->empty());
  for (const char* text : {"hidden", "hidden=", "hidden=6x", "=,", "heads=2", "hidden=0"})
    EXPECT_FALSE(parse_options(kMlp, text).ok()) << text;
}

}  // namespace
}  // namespace hone::cost::net
