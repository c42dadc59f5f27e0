#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/file.h"
#include "hone/base/rng.h"
#include "hone/cost/net/train.h"
#include "hone/learn/metrics.h"
#include "hone/learn/net_rows.h"
#include "hone/learn/normalisation.h"
#include "hone/learn/train_net_testing.h"

namespace hone::learn {
namespace {

double pairs(const Net& net, const NetRows& rows) {
  const std::vector<float> score = evaluate(net, rows.batch)[0];
  double right = 0, all = 0;
  for (int64_t g = 0; g < rows.num_tasks(); ++g) {
    for (int64_t i = rows.group_begin[g]; i < rows.group_begin[g + 1]; ++i) {
      for (int64_t j = rows.group_begin[g]; j < i; ++j)
        right += (score[i] > score[j]) == (rows.speed[i] > rows.speed[j]) ? 1 : 0, ++all;
    }
  }
  return right / all;
}

TEST(net_train, libtorch_says_what_the_evaluator_says) {
  for (const Family* family : families()) {
    const Net net = narrow_net(*family);
    const NetBatch batch = random_batch(net, 6, 21);
    const auto torch = torch_evaluate(net, batch, kLibrary);
    ASSERT_TRUE(torch.ok()) << family->name << ": " << torch.status().message();
    const auto plain = evaluate(net, batch);
    ASSERT_EQ(torch->size(), plain.size());
    for (size_t o = 0; o < plain.size(); ++o) {
      for (size_t i = 0; i < plain[o].size(); ++i)
        EXPECT_NEAR((*torch)[o][i], plain[o][i], 1e-5 * (1 + std::abs(plain[o][i])))
            << family->name;
    }
  }
}

TEST(net_train, every_family_learns_a_toy_problem) {
  for (const Family* family : families()) {
    Net net = narrow_net(*family);
    const NetRows rows = toy_rows(net, 100, 12, 1), validation = toy_rows(net, 20, 12, 2);
    set_normalisation(net, rows.batch);
    NetTraining training = quick(parse_loss(family->recipe.loss).value());
    training.epochs = 16;
    const auto epochs = train(net, rows, validation, training);
    ASSERT_TRUE(epochs.ok()) << family->name << ": " << epochs.status().message();
    EXPECT_EQ(epochs->size(), 16U);
    EXPECT_LT(epochs->back().loss, epochs->front().loss) << family->name;
    double best = 0;
    for (const TrainEpoch& epoch : *epochs) best = std::max(best, epoch.pair_accuracy);
    EXPECT_GT(best, 0.75) << family->name;
    // The result is that of the best epoch, and the accuracy is what it says.
    EXPECT_NEAR(pairs(net, validation), best, 0.005) << family->name;
  }
}

TEST(net_train, every_loss_falls_and_orders_pairs) {
  for (const std::string& name : loss_names()) {
    Net net = narrow_net(kFasor);
    const NetRows rows = toy_rows(net, 30, 12, 1);
    NetTraining training = quick(parse_loss(name).value());
    const double before = pairs(net, rows);
    const auto epochs = train(net, rows, no_rows(net), training);
    ASSERT_TRUE(epochs.ok()) << name << ": " << epochs.status().message();
    EXPECT_LT(epochs->back().loss, 0.8 * epochs->front().loss) << name;
    EXPECT_GT(pairs(net, rows), std::max(before, 0.7)) << name;
  }
}

// A net says how long schedules take, also of tasks that it never saw: Fasor's by an output of its
// own, others by their score.
TEST(net_train, multitask_tells_the_time) {
  for (const Family* family : {&kFasor, &kMlp}) {
    Net net = family == &kFasor ? narrow_net(*family, {{"dropout", 0}}) : narrow_net(*family);
    const NetRows rows = toy_rows(net, 200, 12, 1), others = toy_rows(net, 20, 12, 2);
    set_normalisation(net, rows.batch);
    NetTraining training = quick(Loss::kMultiTask);
    training.epochs = 24;
    ASSERT_TRUE(train(net, rows, no_rows(net), training).ok());
    const auto score = static_cast<size_t>(net.find_output("score") - net.outputs.data());
    const std::vector<float> said = evaluate(net, others.batch)[score];
    Determination all;
    for (size_t i = 0; i < said.size(); ++i) all.add(others.log_time[i], -said[i]);
    EXPECT_GT(all.r_squared(), 0.7) << family->name;
  }
}

// A time that is not known teaches nothing of the time.
TEST(net_train, times_that_are_not_known_are_left_out) {
  Net net = narrow_net(kFasor, {{"dropout", 0}});
  NetRows rows = toy_rows(net, 4, 12, 1);
  NetTraining training = quick(Loss::kMultiTask);
  training.bound_weight = training.rank_weight = 0;
  EXPECT_GT(torch_gradients(net, rows, training)->loss, 0.01);
  // The mean over those that are known.
  NetRows half = rows;
  for (size_t i = 0; i < half.log_time.size(); i += 2) half.log_time[i] = NAN;
  const std::vector<float> said = evaluate(net, rows.batch)[1];
  double sum = 0;
  for (size_t i = 1; i < said.size(); i += 2) {
    const double error = std::abs(double{said[i]} - rows.log_time[i]);
    sum += error < 1 ? error * error / 2 : error - 0.5;
  }
  EXPECT_NEAR(torch_gradients(net, half, training)->loss, sum / (said.size() / 2), 1e-4);
  rows.log_time.assign(rows.log_time.size(), NAN);
  const Result<NetGradients> nothing = torch_gradients(net, rows, training);
  ASSERT_TRUE(nothing.ok()) << nothing.status().message();
  EXPECT_EQ(nothing->loss, 0);
  for (const std::vector<float>& gradient : nothing->parameters)
    for (const float value : gradient) ASSERT_EQ(value, 0);
}

// This family drops nothing, so that only the order of sums differs.
TEST(net_train, goes_on_elsewhere_to_the_same_end) {
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  Net whole = narrow_net(kMlp);
  const NetRows rows = toy_rows(whole, 12, 10, 1), validation = toy_rows(whole, 4, 10, 2);
  NetTraining training = quick(Loss::kPairwise);
  training.epochs = 4;
  Net moved = whole;
  const auto straight = train(whole, rows, validation, training);
  ASSERT_TRUE(straight.ok()) << straight.status().message();

  std::atomic<bool> cancel = false;
  training.cancel = &cancel;
  training.state_file = folder->file("state");
  training.progress = [&](const TrainEpoch& epoch) { cancel = epoch.epoch == 2; };
  ASSERT_EQ(train(moved, rows, validation, training).status().code(), Code::kCancelled);
  cancel = false;
  training.progress = nullptr;
  training.resume = true;
  training.place = TrainPlace::kGeneric;
  const auto resumed = train(moved, rows, validation, training);
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR((*resumed)[i].loss, (*straight)[i].loss, 1e-4) << "epoch " << i + 1;
  EXPECT_LT((*resumed)[3].loss, 0.95 * (*resumed)[0].loss);
}

// The parameter is the number of threads; 0 means the code that serves other devices.
class SameWeights : public testing::TestWithParam<int> {};

TEST_P(SameWeights, come_of_the_same_seed_also_after_an_interruption) {
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  GivenOptions options = narrow(kFasor);
  options["dropout"] = 0.2;
  Net fresh = make_net(kFasor, small_inputs(), options).value();
  initialise(fresh, 5);
  const NetRows rows = toy_rows(fresh, 12, 10, 1), validation = toy_rows(fresh, 4, 10, 2);
  NetTraining training = quick(Loss::kMultiTask);
  training.epochs = 6;
  training.threads = std::max(1, GetParam());
  if (GetParam() == 0) training.place = TrainPlace::kGeneric;
  Net whole = fresh, again = fresh;
  ASSERT_TRUE(train(whole, rows, validation, training).ok());
  ASSERT_TRUE(train(again, rows, validation, training).ok());
  const auto expect_whole = [&](const Net& net) {
    for (size_t i = 0; i < whole.parameters.size(); ++i)
      EXPECT_EQ(whole.parameters[i].values, net.parameters[i].values);
  };
  expect_whole(again);
  EXPECT_NE(whole.parameters[0].values, fresh.parameters[0].values);

  std::atomic<bool> cancel = false;
  training.cancel = &cancel;
  for (const int done : {0, 3, 5}) {  // epochs before the interruption: none has left no state
    SCOPED_TRACE(done);
    training.state_file = folder->file(fmt::format("state{}", done));
    cancel = done == 0;
    training.progress = [&](const TrainEpoch& epoch) { cancel = epoch.epoch == done; };
    training.resume = false;
    Net interrupted = fresh;
    EXPECT_EQ(train(interrupted, rows, validation, training).status().code(), Code::kCancelled);
    EXPECT_EQ(interrupted.parameters[0].values, fresh.parameters[0].values);
    EXPECT_EQ(file_exists(training.state_file), done > 0);
    cancel = false;
    training.progress = nullptr;
    training.resume = true;
    const auto resumed = train(interrupted, rows, validation, training);
    ASSERT_TRUE(resumed.ok()) << resumed.status().message();
    EXPECT_EQ(resumed->size(), 6U);
    expect_whole(interrupted);
  }

  training.rate *= 2;
  EXPECT_NE(train(again, rows, validation, training)
                .status()
                .message()
                .find("state5: the saved state is of another net, other data or other options"),
            std::string::npos);
  training.rate /= 2;
  ASSERT_TRUE(
      write_file_atomic(training.state_file, read_file(training.state_file).value().substr(0, 3000))
          .ok());
  EXPECT_NE(train(again, rows, validation, training).status().message().find("cut short"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(net_train, SameWeights, testing::Values(0, 1, 3),
                         [](const auto& threads) { return fmt::format("{}", threads.param); });

TEST(net_train, only_what_is_named_is_trained) {
  Net net = narrow_net(kMlp);
  const Net before = net;
  const NetRows rows = toy_rows(net, 10, 10, 1);
  NetTraining training = quick(Loss::kPairwise);
  training.epochs = 2;
  training.trained = {"head"};
  ASSERT_TRUE(train(net, rows, no_rows(net), training).ok());
  for (size_t i = 0; i < net.parameters.size(); ++i) {
    const std::string& name = net.parameters[i].name;
    const bool changed = net.parameters[i].values != before.parameters[i].values;
    EXPECT_TRUE(name == "head.bias" || changed == (name == "head.weight")) << name;
  }
  // The last layers of a family are some of its layers, but not all.
  for (const Family* family : families()) {
    net = narrow_net(*family);
    for (const std::string_view layer : family->last) {
      EXPECT_NE(net.find_parameter(fmt::format("{}.weight", layer)), nullptr)
          << family->name << " " << layer;
    }
    EXPECT_LT(family->last.size(), net.parameters.size() / 2) << family->name;
  }
}

TEST(net_train, stops_when_validation_no_longer_improves) {
  Net net = narrow_net(kMlp);
  const NetRows rows = toy_rows(net, 4, 10, 1);
  NetRows noise = toy_rows(net, 4, 10, 2);
  Rng rng(1);
  rng.shuffle(noise.speed);
  NetTraining training = quick(Loss::kPairwise);
  training.epochs = 200;
  training.patience = 3;
  const auto epochs = train(net, rows, noise, training);
  ASSERT_TRUE(epochs.ok());
  EXPECT_LT(epochs->size(), 200U);
  for (size_t i = epochs->size() - 3; i < epochs->size(); ++i) EXPECT_FALSE((*epochs)[i].best);
}

TEST(net_train, stops_with_the_epoch_that_uses_up_its_time) {
  Net net = narrow_net(kMlp);
  const NetRows rows = toy_rows(net, 4, 10, 1);
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  NetTraining training = quick(Loss::kPairwise);
  training.epochs = 50;
  training.seconds = 1e-9;
  training.state_file = folder->file("state");
  const auto epochs = train(net, rows, no_rows(net), training);
  ASSERT_TRUE(epochs.ok()) << epochs.status().message();
  EXPECT_EQ(epochs->size(), 1U);
  // Time that was used before counts, and a later limit does not make it another training.
  training.resume = true;
  EXPECT_EQ(train(net, rows, no_rows(net), training)->size(), 1U);
  training.seconds = 0;
  EXPECT_EQ(train(net, rows, no_rows(net), training)->size(), 50U);
}

TEST(net_train, normalises_by_what_is_no_padding) {
  Net net = make_net(kTlp, small_inputs(), narrow(kTlp)).value();
  NetBatch batch = random_batch(net, 50, 1);
  std::vector<float>* steps = nullptr;
  const std::vector<float>* mask = nullptr;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    if (net.inputs[i].name == "steps") steps = &batch.inputs[i];
    if (net.inputs[i].name == "steps_mask") mask = &batch.inputs[i];
  }
  for (size_t k = 0; k < steps->size(); ++k) {
    float& value = (*steps)[k];
    value = (*mask)[k / 7] == 0 ? 1000 : k % 7 == 3 ? 5 : 3 + 2 * value;
  }
  set_normalisation(net, batch);
  const std::vector<float>& mean = net.find_constant("steps.mean")->values;
  const std::vector<float>& scale = net.find_constant("steps.scale")->values;
  EXPECT_NEAR(mean[0], 3, 0.7);
  EXPECT_NEAR(scale[0], 0.5, 0.1);
  EXPECT_FLOAT_EQ(mean[3], 5);
  EXPECT_EQ(scale[3], 0);  // it does not vary
}

TEST(net_train, says_what_is_missing) {
  Net net = narrow_net(kMlp);
  const NetRows rows = toy_rows(net, 2, 4, 1);
  NetTraining training = quick(Loss::kRmse);
  training.library = "/nowhere/libhone_torch.so";
  EXPECT_EQ(train(net, rows, rows, training).status().message(),
            "training a neural cost model needs /nowhere/libhone_torch.so, which is built where "
            "libtorch is: apt-get install libtorch-dev and build Hone again");
  EXPECT_FALSE(parse_loss("none").ok());
  EXPECT_EQ(parse_train_place("tpu").status().message(),
            "cannot train on 'tpu', expected one of cpu, cuda");
}

}  // namespace
}  // namespace hone::learn
