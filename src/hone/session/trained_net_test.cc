// Every family is trained on candidates of real tasks, written, read back and compiled.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/file.h"
#include "hone/cost/net/torch_library.h"
#include "hone/cost/registry.h"
#include "hone/learn/net_rows.h"
#include "hone/learn/normalisation.h"
#include "hone/neural/restored_net.h"
#include "hone/session/cost_models.h"
#include "hone/session/neural_model_testing.h"

namespace hone {
namespace {

namespace net = cost::net;

constexpr int kEach = 20;    // candidates of a task to train on, ...
constexpr int kUnseen = 20;  // ... and to judge by
// Of the pairs of what it was trained on and of the others; by chance 0.5.
constexpr double kLeastAccuracy = 0.8, kLeastUnseen = 0.65;

// Candidates `begin` to `end` of those sampled.
learn::TaskTrials timed_by_the_analytic_model(const compute::Dag& dag, const Sampled& sampled,
                                              size_t begin, size_t end) {
  learn::TaskTrials task{.key = compute::task_key(dag), .kernel_class = compute::kernel_class(dag)};
  task.dag = std::make_shared<const compute::Dag>(dag);
  const auto queries = std::span(sampled.queries).subspan(begin, end - begin);
  const std::vector<double> seconds =
      cost::make_model("analytic").value()->predict(queries).value();
  for (size_t i = begin; i < end; ++i)
    task.trials.push_back({sampled.candidates[i].steps, seconds[i - begin]});
  return task;
}

double pairs(const std::vector<float>& scores, const net::NetRows& rows) {
  double right = 0, all = 0;
  for (int64_t g = 0; g < rows.num_tasks(); ++g) {
    const auto begin = static_cast<size_t>(rows.group_begin[static_cast<size_t>(g)]);
    const auto end = static_cast<size_t>(rows.group_begin[static_cast<size_t>(g) + 1]);
    for (size_t i = begin; i < end; ++i) {
      for (size_t k = begin; k < i; ++k) {
        if (rows.speed[i] == rows.speed[k]) continue;
        right += (scores[i] > scores[k]) == (rows.speed[i] > rows.speed[k]) ? 1 : 0, ++all;
      }
    }
  }
  return right / all;
}

struct Trained {
  std::string name;
  const net::Family* family;
  net::GivenOptions options;
};

// Every family with its defaults, and the other form of graphs.
std::vector<Trained> trained_nets() {
  std::vector<Trained> all;
  for (const net::Family* family : net::families())
    all.push_back({std::string(family->name), family, {}});
  all.push_back({"metatune_super", &net::kMetatune, {{"super", 1}, {"width", 8}, {"layers", 1}}});
  return all;
}

class TrainedNet : public testing::TestWithParam<Trained> {};

TEST_P(TrainedNet, orders_schedules_and_is_the_same_read_back_and_compiled) {
  if (!net::load_torch(HONE_TORCH_LIBRARY).ok()) GTEST_SKIP() << "this build is without libtorch";
  const net::Family& family = *GetParam().family;
  const compute::Dag dags[] = {compute::testing::gemm(64, 48, 32),
                               compute::testing::gemm(32, 64, 96)};
  std::vector<Sampled> sampled;
  sampled.reserve(std::size(dags));  // queries point into them
  learn::Dataset dataset, unseen;
  for (const compute::Dag& dag : dags) {
    sampled.emplace_back(dag, kEach + kUnseen);
    dataset.tasks.push_back(timed_by_the_analytic_model(dag, sampled.back(), 0, kEach));
    unseen.tasks.push_back(
        timed_by_the_analytic_model(dag, sampled.back(), kEach, kEach + kUnseen));
  }
  net::GivenOptions options = net::narrow(family);
  for (const auto& [name, value] : GetParam().options) options[name] = value;
  for (const char* input : {"decisions", "analytic"}) {  // what would tell all
    if (options.contains(input)) options[input] = 0;
  }
  net::Net trained = net::make_net(family, net::all_inputs(), options).value();
  net::initialise(trained, 3);
  const net::NetRows rows = learn::make_rows(dataset, target::host(), trained, {}).value();
  learn::set_normalisation(trained, rows.batch);
  net::NetTraining training;
  training.loss = net::parse_loss(family.recipe.loss).value();
  training.epochs = 120;
  training.batch = 2 * kEach;
  training.rate = 5e-3;
  training.average = 0.9;
  training.library = HONE_TORCH_LIBRARY;
  const auto epochs = net::train(trained, rows, net::no_rows(trained), training);
  ASSERT_TRUE(epochs.ok()) << epochs.status().message();
  const std::vector<float> scores =
      net::torch_evaluate(trained, rows.batch, HONE_TORCH_LIBRARY).value()[0];
  EXPECT_GT(pairs(scores, rows), kLeastAccuracy);
  const net::NetRows others = learn::make_rows(unseen, target::host(), trained, {}).value();
  const std::vector<float> guessed =
      net::torch_evaluate(trained, others.batch, HONE_TORCH_LIBRARY).value()[0];
  EXPECT_GT(pairs(guessed, others), kLeastUnseen);

  float largest = 1;
  for (const float score : scores) largest = std::max(largest, std::abs(score));
  const TempDir folder = TempDir::create().value();
  const std::string path = folder.file("net.onnx");
  std::vector<std::string> texts;
  const net::GivenOptions complete = net::complete_options(family, options).value();
  for (const auto& [name, value] : complete) texts.push_back(fmt::format("{}={}", name, value));
  NetCard card{.log_seconds_per_score = 1 / largest};
  card.notes = {{"options", fmt::format("{}", fmt::join(texts, ","))}};
  ASSERT_TRUE(write_net(path, trained, card).ok());
  const Result<net::Net> restored = restore_net(read_net(path).value(), path);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  for (size_t i = 0; i < trained.parameters.size(); ++i)
    EXPECT_EQ(restored->parameters[i].values, trained.parameters[i].values);

  // Compiled by Hone it says what libtorch says, up to 1e-4 of the largest score.
  const auto model = make_cost_model({.cost = path, .db = folder.file("hone.db")});
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (size_t t = 0; t < sampled.size(); ++t) {
    const std::span<const cost::Query> queries = sampled[t].queries;
    const std::vector<double> seconds = (*model)->predict(queries.first(kEach)).value();
    const size_t first = t * kEach;  // the default schedule
    for (size_t i = 1; i < seconds.size(); ++i) {
      EXPECT_NEAR(largest * std::log(seconds[i] / seconds[0]), scores[first] - scores[first + i],
                  1e-4 * largest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, TrainedNet, testing::ValuesIn(trained_nets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
