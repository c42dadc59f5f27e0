#include "hone/cost/gbdt_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "hone/analysis/features.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/evaluate.h"
#include "hone/cost/registry.h"
#include "hone/target/target.h"

namespace hone::cost {
namespace {

const target::Target& machine() {
  static const target::Target target = target::find("x86-64-avx2").value();
  return target;
}

// A world in which time is what the analytic model says, but four times as long where the register
// tile is large.
double true_seconds(const Query& query) {
  static const auto analytic = make_model("analytic").value();
  const CandidateFeatures features = candidate_features(query, FeatureSet::kStatements);
  const auto& names = candidate_feature_names(FeatureSet::kStatements);
  const auto at = std::find(names.begin(), names.end(), "main.registers.tile") - names.begin();
  const bool is_large = features.row[static_cast<size_t>(at)] > 3;
  return analytic->predict({&query, 1}).value()[0] * (is_large ? 4 : 1);
}

Dataset make_dataset(int trials) {
  Dataset dataset;
  Rng rng(3);
  for (const int64_t n : {32, 64, 96}) {
    const compute::Dag dag = compute::testing::gemm(48, n, 64);
    const space::Space space = space::Space::create(dag, machine()).value();
    TaskTrials task;
    task.key = compute::task_key(dag);
    task.kernel_class = "matmul";
    task.models = {n == 96 ? "second" : "first"};
    task.dag = std::make_shared<const compute::Dag>(dag);
    while (std::ssize(task.trials) < trials) {
      const space::Point point = space.sample(rng);
      const auto candidate = space.instantiate(point);
      if (!candidate.ok()) continue;
      task.trials.push_back({space.steps(point), true_seconds({&*candidate, &machine(), 1, 0})});
    }
    dataset.tasks.push_back(std::move(task));
  }
  return dataset;
}

constexpr BoostOptions kFew = {.rounds = 20,
                               .depth = 4,
                               .leaves = 0,
                               .learning_rate = 0.3,
                               .feature_share = 1,
                               .min_leaf_weight = 5};

double accuracy(const Dataset& dataset, const CostModel& model) {
  return evaluate(dataset, machine(), model).value().all.pair_accuracy;
}

class GbdtModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!boosting_status().ok()) GTEST_SKIP() << boosting_status().message();
  }
};

TEST(candidate_features, have_a_name_each) {
  const Dataset dataset = make_dataset(1);
  const space::Candidate candidate =
      space::make_candidate(*dataset.tasks[0].dag, dataset.tasks[0].trials[0].steps).value();
  const Query query{&candidate, &machine(), 1, 0};
  for (const FeatureSet set : kTreeFeatures) {
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

TEST_F(GbdtModel, learns_what_the_analytic_model_gets_wrong) {
  const Dataset dataset = make_dataset(40);
  const double analytic = accuracy(dataset, **make_model("analytic"));
  for (const TreeLibrary library : {TreeLibrary::kXgboost, TreeLibrary::kLightgbm}) {
    if (!boosting_status(library).ok()) continue;  // said by the tests of each
    for (const FeatureSet set : kTreeFeatures) {
      const Trainer trainer = [&](const Dataset& part) -> Result<std::unique_ptr<CostModel>> {
        BoostOptions options = kFew;
        options.library = library;
        const DeviceTrials trials = {&part, &machine()};
        HONE_ASSIGN_OR_RETURN(TrainedTrees trained, train({&trials, 1}, set, options));
        return make_gbdt_model(std::move(trained));
      };
      const auto held_out = cross_evaluate(dataset, machine(), Split::kByModel, trainer);
      ASSERT_TRUE(held_out.ok()) << held_out.status().message();
      EXPECT_GT(held_out->all.pair_accuracy, analytic) << model_name(set);
    }
  }
}

TEST_F(GbdtModel, learns_while_it_is_used) {
  const Dataset dataset = make_dataset(60);
  const auto model = make_gbdt_model({FeatureSet::kCombined, Trees()});
  const double before = accuracy(dataset, *model);
  EXPECT_NEAR(before, accuracy(dataset, **make_model("analytic")), 1e-3);
  EXPECT_EQ(model->revision(), 0u);
  for (const TaskTrials& task : dataset.tasks) {
    for (const MeasuredSteps& trial : task.trials) {
      const space::Candidate candidate = space::make_candidate(*task.dag, trial.steps).value();
      const Observation observation{{&candidate, &machine(), 1, task.key}, trial.seconds};
      ASSERT_TRUE(model->update({&observation, 1}).ok());
    }
  }
  EXPECT_GT(model->revision(), 0u);
  EXPECT_GT(accuracy(dataset, *model), before + 0.05);
}

TEST_F(GbdtModel, learns_the_same_from_the_same) {
  const Dataset dataset = make_dataset(20);
  std::vector<std::vector<double>> predicted;
  for (int run = 0; run < 2; ++run) {
    const auto model = make_gbdt_model({FeatureSet::kCombined, Trees()});
    predicted.emplace_back();
    for (const TaskTrials& task : dataset.tasks) {
      for (const MeasuredSteps& trial : task.trials) {
        const space::Candidate candidate = space::make_candidate(*task.dag, trial.steps).value();
        const Query query{&candidate, &machine(), 1, task.key};
        predicted.back().push_back(model->predict({&query, 1}).value()[0]);
        const Observation both[] = {{query, INFINITY}, {query, trial.seconds}};
        ASSERT_TRUE(model->update(both).ok());
      }
    }
    EXPECT_GT(model->revision(), 0u);
  }
  EXPECT_EQ(predicted[0], predicted[1]);
}

TEST_F(GbdtModel, file_gives_the_same_back) {
  const Dataset dataset = make_dataset(20);
  const DeviceTrials trials = {&dataset, &machine()};
  const TrainedTrees trained = train({&trials, 1}, FeatureSet::kCombined, kFew).value();
  EXPECT_EQ(format(trained), format(train({&trials, 1}, FeatureSet::kCombined, kFew).value()));
  const Result<TrainedTrees> back = parse_trained(format(trained), "file");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->features, trained.features);
  EXPECT_EQ(back->trees, trained.trees);
}

TEST_F(GbdtModel, trust_is_an_exponent) {
  Trees trees;
  trees.add(std::vector<TreeNode>{{-1, 0.8F, 0}});
  const Dataset dataset = make_dataset(30);
  const TaskTrials& task = dataset.tasks[0];
  const auto candidate = space::make_candidate(*task.dag, task.trials[0].steps).value();
  const Query query{&candidate, &machine(), 1, task.key};
  const auto predict = [&](const CostModel& model) {
    return model.predict({&query, 1}).value()[0];
  };
  const TrainedTrees trained = {FeatureSet::kCombined, trees};
  const double base = predict(*make_gbdt_model(trained, 0));
  EXPECT_NEAR(predict(*make_gbdt_model(trained)), base * std::exp(0.8), 1e-5 * base);
  EXPECT_NEAR(predict(*make_gbdt_model(trained, 0.5)), base * std::exp(0.4), 1e-5 * base);
}

// A search trusts trees over the analytic model by half, wholly if they learned from pairs or stand
// alone.
TEST(trust, is_less_in_a_search) {
  const auto predict = [](const std::string& name, Use use) {
    const Dataset dataset = make_dataset(1);
    const TaskTrials& task = dataset.tasks[0];
    const auto candidate = space::make_candidate(*task.dag, task.trials[0].steps).value();
    const Query query{&candidate, &machine(), 1, task.key};
    return make_model(name, use).value()->predict({&query, 1}).value()[0];
  };
  const double analytic = predict("analytic", Use::kSearch);
  for (const auto& [name, trust] :
       {std::pair("combined", 0.5), std::pair("combined-znver5", 1.0)}) {
    const double ranked = predict(name, Use::kRank) / analytic;
    EXPECT_NE(ranked, 1);
    EXPECT_NEAR(predict(name, Use::kSearch) / analytic, std::pow(ranked, trust), 1e-4) << name;
  }
  EXPECT_EQ(predict("gbdt", Use::kSearch), predict("gbdt", Use::kRank));
}

// On another device small register tiles are slow: a few of its times are enough to know.
TEST_F(GbdtModel, adapts_to_another_device) {
  const Dataset first = make_dataset(60);
  Dataset second = first, few = first;
  for (Dataset* dataset : {&second, &few}) {
    for (TaskTrials& task : dataset->tasks) {
      for (MeasuredSteps& trial : task.trials) {
        const auto candidate = space::make_candidate(*task.dag, trial.steps).value();
        const Query query{&candidate, &machine(), 1, 0};
        const double analytic = make_model("analytic").value()->predict({&query, 1}).value()[0];
        trial.seconds = trial.seconds > 2 * analytic ? analytic : 4 * analytic;
      }
    }
  }
  few.tasks.resize(2);
  const DeviceTrials known = {&first, &machine()}, fresh = {&few, &machine()};
  const TrainedTrees base = train({&known, 1}, FeatureSet::kCombined, kFew).value();
  const TrainedTrees adapted = adapt(base, {&fresh, 1}).value();
  EXPECT_GT(adapted.trees.size(), base.trees.size());
  EXPECT_TRUE(adapted.trees.format().starts_with(base.trees.format()));
  second.tasks.erase(second.tasks.begin(), second.tasks.begin() + 2);
  const double before = accuracy(second, *make_gbdt_model(base));
  EXPECT_LT(before, 0.7);
  EXPECT_GT(accuracy(second, *make_gbdt_model(adapted)), before + 0.15);
  // Trained on both they say of each schedule what it takes in the middle.
  const DeviceTrials both[] = {known, fresh};
  EXPECT_NE(format(train(both, FeatureSet::kCombined, kFew).value()), format(base));
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
  zen5.cpu = "znver5";
  EXPECT_EQ(default_model(zen5), "combined-znver5");
  EXPECT_EQ(model_kind("combined-znver5"), "combined");
  EXPECT_EQ(model_kind("my.model"), "my.model");
  EXPECT_EQ(default_model(target::find("aarch64-neon").value()), "analytic");
  const auto nowhere = make_model("nowhere/a.model");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.status().message().find("nowhere/a.model"), std::string::npos);
}

}  // namespace
}  // namespace hone::cost
