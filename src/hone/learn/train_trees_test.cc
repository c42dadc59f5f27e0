#include "hone/learn/train_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/cost/registry.h"
#include "hone/learn/evaluate.h"
#include "hone/target/target.h"

namespace hone::learn {
namespace {

const target::Target& machine() {
  static const target::Target target = target::find("x86-64-avx2").value();
  return target;
}

// A world in which time is what the analytic model says, but four times as long where the register
// tile is large.
double true_seconds(const cost::Query& query) {
  static const auto analytic = cost::make_model("analytic").value();
  const cost::CandidateFeatures features =
      cost::candidate_features(query, cost::FeatureSet::kStatements);
  const auto& names = cost::candidate_feature_names(cost::FeatureSet::kStatements);
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

constexpr cost::BoostOptions kFew = {.rounds = 20,
                                     .depth = 4,
                                     .leaves = 0,
                                     .learning_rate = 0.3,
                                     .feature_share = 1,
                                     .min_leaf_weight = 5};

double accuracy(const Dataset& dataset, const cost::CostModel& model) {
  return evaluate(dataset, machine(), model).value().all.pair_accuracy;
}

class GbdtModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cost::boosting_status().ok()) GTEST_SKIP() << cost::boosting_status().message();
  }
};

TEST_F(GbdtModel, learns_what_the_analytic_model_gets_wrong) {
  const Dataset dataset = make_dataset(40);
  const double analytic = accuracy(dataset, **cost::make_model("analytic"));
  for (const cost::TreeLibrary library :
       {cost::TreeLibrary::kXgboost, cost::TreeLibrary::kLightgbm}) {
    if (!cost::boosting_status(library).ok()) continue;  // said by the tests of each
    for (const cost::FeatureSet set : cost::kTreeFeatures) {
      if (cost::device_kind(set) != machine().kind()) continue;
      const Trainer trainer = [&](const Dataset& part) -> Result<std::unique_ptr<cost::CostModel>> {
        cost::BoostOptions options = kFew;
        options.library = library;
        const DeviceTrials trials = {&part, &machine()};
        HONE_ASSIGN_OR_RETURN(cost::TrainedTrees trained, train_trees({&trials, 1}, set, options));
        return cost::make_gbdt_model(std::move(trained));
      };
      const auto held_out = cross_evaluate(dataset, machine(), Split::kByModel, trainer);
      ASSERT_TRUE(held_out.ok()) << held_out.status().message();
      EXPECT_GT(held_out->all.pair_accuracy, analytic) << cost::model_name(set);
    }
  }
}

TEST_F(GbdtModel, learns_while_it_is_used) {
  const Dataset dataset = make_dataset(60);
  const auto model = cost::make_gbdt_model({cost::FeatureSet::kCombined, cost::Trees()});
  const double before = accuracy(dataset, *model);
  EXPECT_NEAR(before, accuracy(dataset, **cost::make_model("analytic")), 1e-3);
  EXPECT_EQ(model->revision(), 0u);
  for (const TaskTrials& task : dataset.tasks) {
    for (const MeasuredSteps& trial : task.trials) {
      const space::Candidate candidate = space::make_candidate(*task.dag, trial.steps).value();
      const cost::Observation observation{{&candidate, &machine(), 1, task.key}, trial.seconds};
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
    const auto model = cost::make_gbdt_model({cost::FeatureSet::kCombined, cost::Trees()});
    predicted.emplace_back();
    for (const TaskTrials& task : dataset.tasks) {
      for (const MeasuredSteps& trial : task.trials) {
        const space::Candidate candidate = space::make_candidate(*task.dag, trial.steps).value();
        const cost::Query query{&candidate, &machine(), 1, task.key};
        predicted.back().push_back(model->predict({&query, 1}).value()[0]);
        const cost::Observation both[] = {{query, INFINITY}, {query, trial.seconds}};
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
  const cost::TrainedTrees trained =
      train_trees({&trials, 1}, cost::FeatureSet::kCombined, kFew).value();
  EXPECT_EQ(cost::format(trained),
            cost::format(train_trees({&trials, 1}, cost::FeatureSet::kCombined, kFew).value()));
  const Result<cost::TrainedTrees> back = cost::parse_trained(cost::format(trained), "file");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->features, trained.features);
  EXPECT_EQ(back->trees, trained.trees);
}

TEST_F(GbdtModel, trust_is_an_exponent) {
  cost::Trees trees;
  trees.add(std::vector<cost::TreeNode>{{-1, 0.8F, 0}});
  const Dataset dataset = make_dataset(30);
  const TaskTrials& task = dataset.tasks[0];
  const auto candidate = space::make_candidate(*task.dag, task.trials[0].steps).value();
  const cost::Query query{&candidate, &machine(), 1, task.key};
  const auto predict = [&](const cost::CostModel& model) {
    return model.predict({&query, 1}).value()[0];
  };
  const cost::TrainedTrees trained = {cost::FeatureSet::kCombined, trees};
  const double base = predict(*cost::make_gbdt_model(trained, 0));
  EXPECT_NEAR(predict(*cost::make_gbdt_model(trained)), base * std::exp(0.8), 1e-5 * base);
  EXPECT_NEAR(predict(*cost::make_gbdt_model(trained, 0.5)), base * std::exp(0.4), 1e-5 * base);
}

// A search trusts trees over the analytic model by half, wholly if they learned from pairs or stand
// alone.
TEST(trust, is_less_in_a_search) {
  const auto predict = [](const std::string& name, cost::Use use) {
    const Dataset dataset = make_dataset(1);
    const TaskTrials& task = dataset.tasks[0];
    const auto candidate = space::make_candidate(*task.dag, task.trials[0].steps).value();
    const cost::Query query{&candidate, &machine(), 1, task.key};
    return cost::make_model(name, use).value()->predict({&query, 1}).value()[0];
  };
  const double analytic = predict("analytic", cost::Use::kSearch);
  for (const auto& [name, trust] :
       {std::pair("combined", 0.5), std::pair("combined-znver5", 1.0)}) {
    const double ranked = predict(name, cost::Use::kRank) / analytic;
    EXPECT_NE(ranked, 1);
    EXPECT_NEAR(predict(name, cost::Use::kSearch) / analytic, std::pow(ranked, trust), 1e-4)
        << name;
  }
  EXPECT_EQ(predict("gbdt", cost::Use::kSearch), predict("gbdt", cost::Use::kRank));
}

// On another device small register tiles are slow: a few of its times are enough to know.
TEST_F(GbdtModel, adapts_to_another_device) {
  const Dataset first = make_dataset(60);
  Dataset second = first, few = first;
  for (Dataset* dataset : {&second, &few}) {
    for (TaskTrials& task : dataset->tasks) {
      for (MeasuredSteps& trial : task.trials) {
        const auto candidate = space::make_candidate(*task.dag, trial.steps).value();
        const cost::Query query{&candidate, &machine(), 1, 0};
        const double analytic =
            cost::make_model("analytic").value()->predict({&query, 1}).value()[0];
        trial.seconds = trial.seconds > 2 * analytic ? analytic : 4 * analytic;
      }
    }
  }
  few.tasks.resize(2);
  const DeviceTrials known = {&first, &machine()}, fresh = {&few, &machine()};
  const cost::TrainedTrees base =
      train_trees({&known, 1}, cost::FeatureSet::kCombined, kFew).value();
  const cost::TrainedTrees adapted = adapt_trees(base, {&fresh, 1}).value();
  EXPECT_GT(adapted.trees.size(), base.trees.size());
  EXPECT_TRUE(adapted.trees.format().starts_with(base.trees.format()));
  second.tasks.erase(second.tasks.begin(), second.tasks.begin() + 2);
  const double before = accuracy(second, *cost::make_gbdt_model(base));
  EXPECT_LT(before, 0.7);
  EXPECT_GT(accuracy(second, *cost::make_gbdt_model(adapted)), before + 0.15);
  // Trained on both they say of each schedule what it takes in the middle.
  const DeviceTrials both[] = {known, fresh};
  EXPECT_NE(cost::format(train_trees(both, cost::FeatureSet::kCombined, kFew).value()),
            cost::format(base));
}

}  // namespace
}  // namespace hone::learn
