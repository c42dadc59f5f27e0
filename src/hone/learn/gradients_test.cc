// Tests that several threads compute the same of a batch as one does, and as the evaluator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "hone/cost/net/padding.h"
#include "hone/learn/torch/workers.h"
#include "hone/learn/train_net_testing.h"

namespace hone::learn {
namespace {

Net without_dropout(const Family& family) {
  const bool drops = std::any_of(family.options.begin(), family.options.end(),
                                 [](const FamilyOption& o) { return o.name == "dropout"; });
  return narrow_net(family, drops ? GivenOptions{{"dropout", 0}} : GivenOptions{});
}

NetGradients gradients(const Net& net, const NetRows& rows, Loss loss, int threads,
                       TrainPlace place = TrainPlace::kProcessor) {
  NetTraining training = quick(loss);
  training.threads = threads;
  training.place = place;
  Result<NetGradients> result = torch_gradients(net, rows, training);
  EXPECT_TRUE(result.ok()) << net.family << ": " << result.status().message();
  return std::move(result).value();
}

void expect_same(const Net& net, const NetGradients& a, const NetGradients& b,
                 double share = 1e-5) {
  EXPECT_NEAR(a.loss, b.loss, share * (1 + std::abs(a.loss)));
  double largest = 0;
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    for (size_t k = 0; k < a.parameters[i].size(); ++k) {
      EXPECT_NEAR(a.parameters[i][k], b.parameters[i][k],
                  share * (1 + std::abs(a.parameters[i][k])))
          << net.parameters[i].name;
      largest = std::max<double>(largest, std::abs(a.parameters[i][k]));
    }
  }
  EXPECT_GT(largest, 1e-3);
}

// 48 rows: one thread has them in one part, three in three, and no part has whole tasks.
TEST(net_gradients, of_three_threads_are_those_of_one_for_each_loss) {
  const Net net = without_dropout(kFasor);
  const NetRows rows = toy_rows(net, 4, 12, 1);
  for (const std::string& name : loss_names()) {
    SCOPED_TRACE(name);
    const Loss loss = parse_loss(name).value();
    expect_same(net, gradients(net, rows, loss, 1), gradients(net, rows, loss, 3));
  }
}

TEST(net_gradients, of_three_threads_are_those_of_one_for_each_family) {
  for (const Family* family : families()) {
    SCOPED_TRACE(family->name);
    const Net net = without_dropout(*family);
    // 200 rows are three parts even for one thread, and five rows are one part even for three.
    for (const int each : {5, 50}) {
      const NetRows rows = toy_rows(net, each == 5 ? 1 : 4, each, 2);
      const Loss loss = parse_loss(family->recipe.loss).value();
      expect_same(net, gradients(net, rows, loss, 1), gradients(net, rows, loss, 3));
    }
  }
}

// Sums may be in another order. TabNet's masks are 0 beyond a threshold: its gradients differ by
// 3e-4 with the matrix products of some processors.
void expect_gradients_of_the_processor(TrainPlace place, double share, double of_tabnet) {
  for (const Family* family : families()) {
    SCOPED_TRACE(family->name);
    const Net net = without_dropout(*family);
    const NetRows rows = toy_rows(net, 4, 50, 2);
    const Loss loss = parse_loss(family->recipe.loss).value();
    expect_same(net, gradients(net, rows, loss, 1), gradients(net, rows, loss, 1, place),
                family->name == "tabnet" ? of_tabnet : share);
  }
}

TEST(net_gradients, of_libtorchs_operators_alone_are_those_of_the_processor) {
  expect_gradients_of_the_processor(TrainPlace::kGeneric, 1e-4, 1e-3);
}

TEST(net_gradients, of_cuda_are_those_of_the_processor) {
  const Net small = without_dropout(kSmall);
  NetTraining training = quick(Loss::kPairwise);
  training.place = TrainPlace::kCuda;
  if (const Status found = torch_gradients(small, toy_rows(small, 2, 12, 1), training).status();
      !found.ok()) {
    EXPECT_EQ(found.message(), "this libtorch finds no CUDA device");
    GTEST_SKIP() << found.message();
  }
  expect_gradients_of_the_processor(TrainPlace::kCuda, 1e-3, 1e-3);
}

// The next measurement may turn an order of times within 4 %.
TEST(net_gradients, of_an_order_that_may_be_noise_are_zero) {
  const Net net = without_dropout(kFasor);
  NetRows rows = toy_rows(net, 1, 3, 6);
  for (std::vector<float>* labels : {&rows.log_time, &rows.memory_bound, &rows.core_bound})
    labels->assign(3, NAN);  // only the order can be learnt
  const auto largest = [&](Loss loss, double slowest) {
    rows.speed = {static_cast<float>(1 / slowest), 1.0F,
                  static_cast<float>(1 / std::sqrt(slowest))};
    float found = 0;
    for (const std::vector<float>& values : gradients(net, rows, loss, 1).parameters) {
      for (const float value : values) found = std::max(found, std::abs(value));
    }
    return found;
  };
  for (const Loss loss : {Loss::kPairwise, Loss::kLambdaRank, Loss::kMultiTask}) {
    EXPECT_EQ(largest(loss, 1.0), 0);
    EXPECT_EQ(largest(loss, 1.039), 0);
    EXPECT_GT(largest(loss, 1.041), 1e-5);
  }
}

double rmse(const Net& net, const NetRows& rows) {
  const std::vector<float> score = evaluate(net, rows.batch)[0];
  double sum = 0;
  for (size_t i = 0; i < score.size(); ++i) {
    const double error = double{score[i]} - rows.speed[i];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(score.size()));
}

// A small step along the gradient changes the loss by its length times the step.
TEST(net_gradients, are_the_slope_of_what_the_evaluator_says) {
  std::vector<Net> nets;
  for (const Family* family : families()) nets.push_back(without_dropout(*family));
  nets.push_back(narrow_net(kAtformer, {{"hidden", 40}, {"dropout", 0}}));  // heads of 20 numbers
  for (const Net& net : nets) {
    const NetRows rows = toy_rows(net, 2, 12, 4);
    const NetGradients g = gradients(net, rows, Loss::kRmse, 2);
    EXPECT_NEAR(g.loss, rmse(net, rows), 1e-4 * (1 + g.loss)) << net.family;
    double square = 0;
    for (const std::vector<float>& values : g.parameters)
      square += std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    const double norm = std::sqrt(square), width = 2e-3 / (1 + norm);
    const auto moved = [&](double step) {
      Net copy = net;
      for (size_t i = 0; i < copy.parameters.size(); ++i) {
        for (size_t k = 0; k < copy.parameters[i].values.size(); ++k)
          copy.parameters[i].values[k] += static_cast<float>(step * g.parameters[i][k] / norm);
      }
      return rmse(copy, rows);
    };
    const double slope = (moved(width) - moved(-width)) / (2 * width);
    EXPECT_NEAR(slope, norm, 0.03 * norm) << net.family;
  }
}

// Rows in parts of about the same length, with the padding that all of a part have left out.
TEST(net_gradients, padding_that_is_left_out_changes_no_score) {
  for (const Family* family : families()) {
    const Net net = without_dropout(*family);
    NetBatch batch = random_batch(net, 300, 5);
    const auto torch = torch_evaluate(net, batch, kLibrary);
    ASSERT_TRUE(torch.ok()) << torch.status().message();
    const std::vector<float> plain = evaluate(net, batch)[0];
    for (size_t i = 0; i < plain.size(); ++i)
      ASSERT_NEAR((*torch)[0][i], plain[i], 1e-4 * (1 + std::abs(plain[i]))) << family->name;
  }
}

TEST(net_gradients, workers_do_all_and_throw_what_the_first_threw) {
  for (const int threads : {1, 3}) {
    torch_module::Workers workers(threads);
    std::vector<int> done(50);
    workers.for_each(50, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
    EXPECT_EQ(done, std::vector<int>(50, 1));
    try {
      workers.for_each(50, [&](int64_t i) {
        if (i >= 7) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "7");
    }
  }
}

}  // namespace
}  // namespace hone::learn
