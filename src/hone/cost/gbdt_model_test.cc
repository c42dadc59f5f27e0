#include "hone/cost/gbdt_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "hone/analysis/features.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/registry.h"
#include "hone/target/target.h"

namespace hone::cost {
namespace {

const target::Target& machine() {
  static const target::Target target = target::find("x86-64-avx2").value();
  return target;
}

TEST(candidate_features, have_a_name_each) {
  const compute::Dag dag = compute::testing::gemm(48, 32, 64);
  const target::Target gpu = target::find("cuda-sm_90a").value();
  for (const FeatureSet set : kTreeFeatures) {
    const target::Target& target = set == FeatureSet::kGpu ? gpu : machine();
    const space::Candidate candidate = space::default_candidate(dag, target).value();
    const Query query{&candidate, &target, 1, 0};
    const CandidateFeatures features = candidate_features(query, set);
    EXPECT_EQ(features.row.size(), candidate_feature_names(set).size());
    for (size_t i = 0; i < features.row.size(); ++i)
      EXPECT_TRUE(std::isfinite(features.row[i])) << candidate_feature_names(set)[i];
    EXPECT_GT(features.base_seconds, 0);
  }
}

// A number of the row of one gemm schedule, by name.
double number(const compute::Dag& dag, std::string_view steps, const std::string& name) {
  const schedule::Steps parsed = schedule::parse_steps(steps).value();
  const space::Candidate candidate = space::make_candidate(dag, parsed).value();
  const Query query{&candidate, &machine(), 1, 0};
  const std::vector<std::string>& names = candidate_feature_names(FeatureSet::kCombined);
  const auto found = std::find(names.begin(), names.end(), name);
  EXPECT_NE(found, names.end()) << name;
  return candidate_features(query, FeatureSet::kCombined)
      .row[static_cast<size_t>(found - names.begin())];
}

TEST(candidate_features, say_what_was_decided_in_words_of_every_task) {
  const compute::Dag dag = compute::testing::gemm(8, 32, 64);
  constexpr std::string_view kTile =
      "split(matmul, n, [16])\nsplit(matmul, m, [4])\nsplit(matmul, k, [2])\n"
      "reorder(matmul, [m.0, n.0, k.0, k.1, m.1, n.1])\nvectorize(matmul, n.1)\n"
      "unroll(matmul, m.1)\nunroll(matmul, k.1)\nparallel(matmul, m.0)";
  const auto of = [&](const std::string& name) { return number(dag, kTile, name); };
  EXPECT_EQ(of("tile.second.vector"), 4);    // columns of the result: 16
  EXPECT_EQ(of("tile.column.unrolled"), 2);  // its rows, the first operand's only ones
  EXPECT_EQ(of("tile.sum.unrolled"), 1);
  EXPECT_EQ(of("tile.column.tiles"), 1);
  EXPECT_EQ(of("inner0.extent"), 5);  // k.0
  EXPECT_EQ(of("run.result"), 5);     // the same result while k.0 runs
  EXPECT_EQ(of("run.first"), 0);
  EXPECT_EQ(of("tail.waste"), 0);
}

TEST(candidate_features, tell_tails_apart) {
  const compute::Dag dag = compute::testing::gemm(9, 32, 64);
  const auto steps = [](std::string_view tail) {
    return fmt::format("split(matmul, m, [4]{})\nparallel(matmul, m.0)", tail);
  };
  EXPECT_EQ(number(dag, "parallel(matmul, m)", "tail.root_rest.waste"), 0);
  const double waste = std::log2(12.0F / 9.0F);
  for (const std::string_view tail : {"", ", peel"}) {
    EXPECT_NEAR(number(dag, steps(tail), "tail.root_rest.waste"), waste, 1e-5) << tail;
    EXPECT_EQ(number(dag, steps(tail), "tail.root_rest.peeled") > 0, !tail.empty());
    EXPECT_EQ(number(dag, steps(tail), "tail.root_last.waste"), 0);
  }
}

// The known part orders the pairs wrongly, which the trees have to outweigh.
TEST(boosting, pairs_are_ordered_with_what_is_known) {
  TrainingRows rows;
  rows.width = 1;
  Rng rng(3);
  std::vector<float> measured;
  for (int i = 0; i < 200; ++i) {
    const auto x = static_cast<float>(rng.uniform());
    rows.features.push_back(x);
    measured.push_back(x);
    rows.known.push_back(-2 * x);
    rows.target.push_back(measured.back() - rows.known.back());
    rows.weight.push_back(1);
    rows.group.push_back(i % 4);
  }
  for (const TreeLibrary library : {TreeLibrary::kXgboost, TreeLibrary::kLightgbm}) {
    if (!boosting_status(library).ok()) continue;
    const BoostOptions options = {.rounds = 60,
                                  .learning_rate = 0.2,
                                  .feature_share = 1,
                                  .value_trees = 0,
                                  .min_leaf_weight = 5,
                                  .library = library};
    const Trees trees = boost(rows, options).value();
    std::vector<double> predicted(rows.rows());
    trees.predict(rows.features, predicted);
    int right = 0, pairs = 0;
    for (size_t i = 0; i < rows.rows(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (rows.group[i] != rows.group[j] || std::abs(measured[i] - measured[j]) < 0.1) continue;
        ++pairs;
        const double seconds = predicted[i] + rows.known[i] - predicted[j] - rows.known[j];
        right += (seconds > 0) == (measured[i] > measured[j]);
      }
    }
    EXPECT_GT(right, 0.95 * pairs);
  }
}

TEST(boosting, trees_have_so_many_leaves_and_see_a_share_of_the_features) {
  TrainingRows rows;
  rows.width = 6;
  Rng rng(5);
  for (int i = 0; i < 400; ++i) {
    double sum = 0;
    for (int f = 0; f < rows.width; ++f) {
      rows.features.push_back(static_cast<float>(rng.uniform()));
      sum += (f + 1) * std::sin(9 * rows.features.back());
    }
    rows.target.push_back(static_cast<float>(sum));
    rows.weight.push_back(1);
    rows.group.push_back(i % 3);
    rows.known.push_back(0);
  }
  for (const TreeLibrary library : {TreeLibrary::kXgboost, TreeLibrary::kLightgbm}) {
    if (!boosting_status(library).ok()) continue;  // said by the tests of each
    const BoostOptions options = {.rounds = 30, .leaves = 9, .library = library};
    const std::string text = boost(rows, options).value().format();
    EXPECT_EQ(text, boost(rows, options).value().format());
    std::set<char> all;
    std::set<std::set<char>> kinds;
    for (size_t line = 0; line < text.size(); line = text.find('\n', line) + 1) {
      const std::string_view tree =
          std::string_view(text).substr(line, text.find('\n', line) - line);
      const auto splits = std::count(tree.begin(), tree.end(), '<');
      EXPECT_LE(splits, 8) << tree;
      std::set<char> features;
      for (size_t at = tree.find('<'); at != tree.npos; at = tree.find('<', at + 1))
        features.insert(tree[at - 1]);
      EXPECT_LE(features.size(), 3u) << tree;
      all.insert(features.begin(), features.end());
      kinds.insert(features);
    }
    EXPECT_EQ(all.size(), 6u);
    EXPECT_GT(kinds.size(), 5u);
  }
}

TEST(pretrained, every_named_model_can_be_made) {
  for (const std::string& name : model_names()) {
    const auto model = make_model(name);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model)->name(), model_kind(name));
  }
  EXPECT_EQ(default_model(machine()), "combined");
  target::Target zen5 = machine();
  zen5.cpu().model = "znver5";
  EXPECT_EQ(default_model(zen5), "combined-znver5");
  EXPECT_EQ(model_kind("combined-znver5"), "combined");
  EXPECT_EQ(model_kind("my.model"), "my.model");
  EXPECT_EQ(default_model(target::find("aarch64-neon").value()), "analytic");
  EXPECT_EQ(default_model(target::find("opencl-generic").value()), "gpu");
  const auto nowhere = make_model("nowhere/a.model");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.status().message().find("nowhere/a.model"), std::string::npos);
}

}  // namespace
}  // namespace hone::cost
