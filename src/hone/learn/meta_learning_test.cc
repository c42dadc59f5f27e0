// Tests of meta-learning on tasks that differ by a slope: no net knows the slope of a new task, but
// a few of its schedules tell.
#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/file.h"
#include "hone/base/rng.h"
#include "hone/cost/net/builder.h"
#include "hone/learn/train_net_testing.h"

namespace hone::learn {
namespace {

// Says minus the logarithm of a time, from one number.
Net line_net() {
  NetBuilder b("lines", {{"x", {2}}});
  const auto layer = [&](const char* name, Value value, int64_t from, int64_t to) {
    const Value weight =
        b.parameter(fmt::format("{}.weight", name), {from, to}, {Fill::kNormal, 0.5});
    return b.add(b.matmul(value, weight), b.parameter(fmt::format("{}.bias", name), {to}, {}));
  };
  const Value inner = b.tanh(layer("inner", b.input("x"), 2, 16));
  b.output("score", layer("head", inner, 16, 1));
  Net net = b.finish();
  initialise(net, 4);
  return net;
}

// Each task has a slope of its own, up or down.
NetRows lines(int tasks, int each, uint64_t seed) {
  Rng rng(seed);
  NetRows rows;
  rows.batch.rows = int64_t{tasks} * each;
  rows.batch.inputs.resize(1);
  for (int t = 0; t < tasks; ++t) {
    const double slope = (rng.chance(0.5) ? 1 : -1) * (0.5 + rng.uniform());
    double best = INFINITY;
    for (int i = 0; i < each; ++i) {
      const double x = 2 * rng.uniform() - 1;
      rows.batch.inputs[0].push_back(static_cast<float>(x));
      rows.batch.inputs[0].push_back(1);
      rows.log_time.push_back(static_cast<float>(slope * x));
      best = std::min(best, slope * x);
    }
    for (int i = 0; i < each; ++i)
      rows.speed.push_back(static_cast<float>(std::exp(best - rows.log_time[rows.speed.size()])));
    rows.group_begin.push_back(int64_t{t + 1} * each);
  }
  rows.memory_bound.assign(rows.speed.size(), NAN);
  rows.core_bound.assign(rows.speed.size(), NAN);
  return rows;
}

NetRows part(const NetRows& all, int64_t begin, int64_t end) {
  const auto cut = [&](const std::vector<float>& values, int64_t width) {
    return std::vector<float>(values.begin() + begin * width, values.begin() + end * width);
  };
  return {{end - begin, {cut(all.batch.inputs[0], 2)}},
          {0, end - begin},
          cut(all.speed, 1),
          cut(all.log_time, 1),
          cut(all.memory_bound, 1),
          cut(all.core_bound, 1)};
}

constexpr int kEach = 20, kShots = 10;

NetTraining meta_training(Meta kind) {
  NetTraining training = quick(Loss::kMultiTask);
  training.rank_weight = 0;  // the time alone
  training.epochs = 2;
  training.batch = 64;
  training.average = 0;
  training.meta = {.kind = kind,
                   .steps = 3,
                   .rate = 0.3,
                   .shots = kShots,
                   .queries = kEach - kShots,
                   .tasks = 4,
                   .batches = 20,
                   .epochs = 5,
                   .patience = 0,
                   .outer = 2e-2};
  return training;
}

struct Losses {
  double before = 0, after = 0;
};
// The mean loss of what each task was not adapted by, before and after.
Losses losses_of(const Net& net, const NetRows& tasks, const NetTraining& training) {
  Losses mean;
  for (int64_t begin = 0; begin < tasks.batch.rows; begin += kEach) {
    Net adapted = net;
    EXPECT_TRUE(adapt(adapted, part(tasks, begin, begin + kShots), training).ok());
    const NetRows others = part(tasks, begin + kShots, begin + kEach);
    const auto share = static_cast<double>(tasks.num_tasks());
    mean.before += loss_of(net, others, training).value() / share;
    mean.after += loss_of(adapted, others, training).value() / share;
  }
  return mean;
}

TEST(meta_learning, teaches_more_than_training_does) {
  const NetRows rows = lines(40, kEach, 1), others = lines(12, kEach, 2);
  // The same number of schedules: an adaptation counts as its steps and its judgement.
  NetTraining plain = meta_training(Meta::kNone);
  plain.epochs = 2 + 20 * 5 * 4 * (3 * kShots + kShots) / (40 * kEach);
  Net supervised = line_net();
  ASSERT_TRUE(train(supervised, rows, no_rows(supervised), plain).ok());
  const NetTraining maml = meta_training(Meta::kMaml);
  const Losses usual = losses_of(supervised, others, maml);
  for (const Meta kind : {Meta::kMaml, Meta::kFomaml, Meta::kReptile}) {
    SCOPED_TRACE(meta_names()[static_cast<size_t>(kind)]);
    Net net = line_net();
    const auto epochs = train(net, rows, no_rows(net), meta_training(kind));
    ASSERT_TRUE(epochs.ok()) << epochs.status().message();
    EXPECT_EQ(epochs->size(), 7U);
    EXPECT_FALSE((*epochs)[1].meta);
    EXPECT_TRUE((*epochs)[2].meta);
    const Losses found = losses_of(net, others, maml);
    EXPECT_LT(found.after, 0.3 * found.before);
    EXPECT_LT(found.after, 0.6 * usual.after) << found.before;
  }
}

TEST(meta_learning, is_judged_by_the_loss_of_tasks_held_out_after_adaptation) {
  Net net = line_net();
  const NetRows rows = lines(20, kEach, 1), others = lines(8, kEach, 2);
  NetTraining training = meta_training(Meta::kMaml);
  training.meta.batches = 5, training.meta.epochs = 60, training.meta.patience = 3;
  const auto epochs = train(net, rows, others, training);
  ASSERT_TRUE(epochs.ok()) << epochs.status().message();
  const TrainEpoch* best = nullptr;
  for (const TrainEpoch& epoch : *epochs) {
    EXPECT_EQ(epoch.meta, epoch.epoch > 2);
    if (epoch.meta && (best == nullptr || epoch.adapted_loss < best->adapted_loss)) {
      best = &epoch;
      EXPECT_TRUE(epoch.best);
    } else if (epoch.meta) {
      EXPECT_FALSE(epoch.best);
    }
  }
  ASSERT_NE(best, nullptr);
  EXPECT_LT(best->adapted_loss, best->plain_loss);
  // It stopped: after three epochs that were no better.
  EXPECT_LT(epochs->size(), 62U);
  EXPECT_EQ(best->epoch + 3, epochs->back().epoch);
}

TEST(meta_learning, gives_the_same_net_with_any_number_of_threads_and_after_an_interruption) {
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const NetRows rows = lines(12, kEach, 1), others = lines(4, kEach, 2);
  NetTraining training = meta_training(Meta::kMaml);
  training.meta.batches = 2, training.meta.epochs = 3;
  training.batch = 8, training.group = 6;  // too few for parts: the same training before
  Net whole = line_net();
  ASSERT_TRUE(train(whole, rows, others, training).ok());
  training.threads = 3;
  for (const int done : {0, 2, 4}) {  // epochs before the interruption
    SCOPED_TRACE(done);
    Net net = line_net();
    std::atomic<bool> cancel = false;
    if (done > 0) {
      training.state_file = folder->file(fmt::format("state{}", done));
      training.cancel = &cancel;
      training.progress = [&](const TrainEpoch& epoch) { cancel = epoch.epoch == done; };
      EXPECT_EQ(train(net, rows, others, training).status().code(), Code::kCancelled);
      training.progress = nullptr, training.cancel = nullptr;
      training.resume = true;
    }
    const auto epochs = train(net, rows, others, training);
    ASSERT_TRUE(epochs.ok()) << epochs.status().message();
    EXPECT_EQ(epochs->size(), 5U);
    for (size_t i = 0; i < whole.parameters.size(); ++i)
      EXPECT_EQ(net.parameters[i].values, whole.parameters[i].values);
    training.resume = false;
  }
}

TEST(meta_learning, can_leave_all_but_the_last_layers) {
  Net net = line_net();
  NetTraining training = meta_training(Meta::kMaml);
  training.epochs = 1, training.meta.epochs = 1, training.meta.batches = 2;
  training.meta.kind = Meta::kNone;
  Net before = net;
  const NetRows rows = lines(12, kEach, 1);
  ASSERT_TRUE(train(before, rows, no_rows(net), training).ok());
  training.meta.kind = Meta::kMaml;
  training.meta_trained = {"head"};
  ASSERT_TRUE(train(net, rows, no_rows(net), training).ok());
  EXPECT_EQ(net.find_parameter("inner.weight")->values,
            before.find_parameter("inner.weight")->values);
  EXPECT_NE(net.find_parameter("head.weight")->values,
            before.find_parameter("head.weight")->values);
  Net adapted = net;
  ASSERT_TRUE(adapt(adapted, part(rows, 0, kShots), training).ok());
  EXPECT_EQ(net.find_parameter("inner.weight")->values,
            adapted.find_parameter("inner.weight")->values);
  EXPECT_NE(net.find_parameter("head.weight")->values,
            adapted.find_parameter("head.weight")->values);
}

TEST(meta_learning, every_family_can_be_trained) {
  for (const Family* family : families()) {
    SCOPED_TRACE(family->name);
    Net net = narrow_net(*family);
    const NetRows rows = toy_rows(net, 4, 8, 1), others = toy_rows(net, 2, 8, 2);
    NetTraining training = quick(parse_loss(family->recipe.loss).value());
    training.epochs = 1;
    training.meta = {
        .kind = Meta::kMaml, .shots = 4, .queries = 4, .tasks = 2, .batches = 2, .epochs = 1};
    if (family == &kSmall) training.place = TrainPlace::kGeneric;
    const auto epochs = train(net, rows, others, training);
    ASSERT_TRUE(epochs.ok()) << epochs.status().message();
    EXPECT_TRUE(std::isfinite(epochs->back().adapted_loss));
  }
}

TEST(meta_learning, says_what_it_cannot_learn_from) {
  Net net = line_net();
  const Net before = net;
  NetTraining training = meta_training(Meta::kMaml);
  const auto refused = [&](const NetRows& rows, const NetRows& others) {
    return train(net, rows, others, training).status().message();
  };
  const NetRows good = lines(4, kEach, 1), few = lines(4, kEach - 1, 1);
  EXPECT_EQ(refused(few, no_rows(net)),
            "0 of 4 tasks have the 20 schedules that shots=10 and queries=10 take, the largest has "
            "19: expected 2 such tasks or more");
  EXPECT_NE(refused(good, few).find("0 of 4 tasks held out have"), std::string::npos);
  EXPECT_NE(refused(lines(1, kEach, 1), no_rows(net)).find("1 of 1 tasks have"), std::string::npos);
  training.meta.rate = 1e38;
  training.meta.steps = 5;
  EXPECT_NE(refused(good, no_rows(net)).find("the loss after adaptation is not a finite number"),
            std::string::npos);
  EXPECT_EQ(net.parameters[0].values, before.parameters[0].values);
}

}  // namespace
}  // namespace hone::learn
