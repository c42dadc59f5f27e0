#include "hone/neural/net_adaptation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/cost/embedder.h"
#include "hone/cost/net/torch_library.h"
#include "hone/neural/net_training_set.h"
#include "hone/neural/net_worker.h"
#include "hone/neural/restored_net.h"
#include "hone/session/cost_models.h"
#include "hone/session/neural_model_testing.h"

namespace hone {
namespace {

namespace net = cost::net;

class Adaptation : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_net(file_, net_, small_card(0.1)).ok()); }

  std::unique_ptr<cost::CostModel> make(const std::string& adapt) {
    auto model = make_cost_model({.cost = file_,
                                  .db = folder_.file("hone.db"),
                                  .adapt = adapt,
                                  .torch = HONE_TORCH_LIBRARY});
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? *std::move(model) : nullptr;
  }

  // Made-up times, by what a net says.
  static std::vector<double> times(const Sampled& sampled, const net::Net& by, double factor) {
    std::vector<double> seconds;
    for (const double score : plain_scores(by, sampled.queries))
      seconds.push_back(1e-3 * std::exp(factor * score));
    return seconds;
  }
  static Status tell(cost::CostModel& model, const Sampled& sampled,
                     const std::vector<double>& seconds, size_t begin, size_t end) {
    std::vector<cost::Observation> observations;
    for (size_t i = begin; i < end; ++i)
      observations.push_back({sampled.queries[i], i % 7 == 3 ? INFINITY : seconds[i]});
    return model.update(observations);
  }
  static double pairs(const cost::CostModel& model, const Sampled& sampled,
                      const std::vector<double>& seconds) {
    const std::vector<double> predicted = model.predict(sampled.queries).value();
    int right = 0, all = 0;
    for (size_t i = 0; i < seconds.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        ++all;
        right += (seconds[i] < seconds[k]) == (predicted[i] < predicted[k]) ? 1 : 0;
      }
    }
    return static_cast<double>(right) / all;
  }

  // Learns in batches of 8 from the first 80 of 120; how well it orders all before and after.
  struct Learned {
    double before, after;
    uint64_t revision;
    std::vector<double> predicted;
  };
  Learned learn(const std::string& adapt, const Sampled& sampled,
                const std::vector<double>& seconds) {
    const auto model = make(adapt);
    if (model == nullptr) return {};
    EXPECT_TRUE(model->learns());
    const double before = pairs(*model, sampled, seconds);
    for (size_t i = 0; i < 80; i += 8) EXPECT_TRUE(tell(*model, sampled, seconds, i, i + 8).ok());
    return {before, pairs(*model, sampled, seconds), model->revision(),
            model->predict(sampled.queries).value()};
  }

  TempDir folder_ = TempDir::create().value();
  std::string file_ = folder_.file("small.onnx");
  net::Net net_ = small_net();
  Sampled sampled_{compute::testing::gemm(64, 48, 32), 120};
};

TEST_F(Adaptation, a_file_gives_its_net_back) {
  const NetFile file = read_net(file_).value();
  const Result<net::Net> back = restore_net(file, file_);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(format_net(*back, file.card), file.bytes);
  NetFile other = file;
  other.card.notes["options"] = "hidden=8,heads=2,layers=2";
  EXPECT_NE(restore_net(other, "a.onnx")
                .status()
                .message()
                .find("a.onnx: not what this version of Hone makes of small with the options "
                      "'hidden=8,heads=2,layers=2' (its weights are others: encoder1."),
            std::string::npos);
  other.card.notes["options"] = "hidden=8,heads=4";
  EXPECT_NE(restore_net(other, "a.onnx").status().message().find("its operators are others"),
            std::string::npos);
  other.card.notes.clear();
  EXPECT_FALSE(restore_net(other, "a.onnx").ok());
}

TEST_F(Adaptation, refuses_what_cannot_adapt) {
  const auto refused = [](const std::string& cost, const std::string& adapt) {
    return make_cost_model({.cost = cost, .adapt = adapt}).status().message();
  };
  EXPECT_EQ(refused(file_, "tail"),
            "--adapt: unknown value 'tail', expected one of none, head, full, momentum, "
            "scratch");
  EXPECT_EQ(
      refused("combined", "head"),
      "--adapt head: the cost model 'combined' is no net, expected a FILE.onnx that hone train "
      "wrote: others learn without");
  EXPECT_TRUE(make_cost_model({.cost = "combined"}).ok());
  EXPECT_EQ(check_adaptation("full", "/nowhere/libhone_torch.so").code(), Code::kUnsupported);
  EXPECT_FALSE(make("none")->learns());
}

TEST_F(Adaptation, few_measurements_change_nothing) {
  const auto model = make("head"), plain = make("none");
  ASSERT_NE(model, nullptr);
  const std::vector<double> seconds = times(sampled_, net_, 0.5);
  ASSERT_TRUE(tell(*model, sampled_, seconds, 0, 8).ok());
  EXPECT_EQ(model->revision(), 0U);
  const std::vector<double> predicted = model->predict(sampled_.queries).value();
  const std::vector<double> expected = plain->predict(sampled_.queries).value();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(predicted[i], expected[i], 1e-4 * expected[i]);
}

TEST_F(Adaptation, the_head_learns_from_measurements_the_same_each_time) {
  // What the net thinks is fast is slow.
  const std::vector<double> seconds = times(sampled_, net_, 0.5);
  const Learned learned = learn("head", sampled_, seconds);
  EXPECT_LT(learned.before, 0.1);
  EXPECT_GT(learned.after, 0.6);
  EXPECT_GE(learned.revision, 3U);
  EXPECT_EQ(learned.predicted, learn("head", sampled_, seconds).predicted);
}

// Times relative to the default schedule are learned, not how long that one takes: the net knows.
TEST_F(Adaptation, a_head_leaves_the_level_of_times_that_a_net_tells) {
  NetCard card = small_card();
  card.tells_time = true;
  ASSERT_TRUE(write_net(file_, net_, card).ok());
  const Learned learned = learn("head", sampled_, times(sampled_, net_, 0.5));
  EXPECT_GE(learned.revision, 3U);
  EXPECT_GT(learned.after, learned.before + 0.05);
  const std::span<const cost::Query> usual(sampled_.queries.data(), 1);
  EXPECT_NEAR(std::log(learned.predicted[0] / sampled_.default_seconds()),
              -plain_scores(net_, usual)[0], 1e-4);
}

TEST_F(Adaptation, all_weights_learn_from_measurements_the_same_each_time) {
  if (!net::load_torch(HONE_TORCH_LIBRARY).ok()) GTEST_SKIP() << "this build is without libtorch";
  const std::vector<double> seconds = times(sampled_, small_net(4), -0.5);
  const Learned full = learn("full", sampled_, seconds);
  const Learned momentum = learn("momentum", sampled_, seconds);
  EXPECT_GT(full.after, full.before + 0.05);
  EXPECT_GE(full.revision, 3U);
  EXPECT_EQ(full.predicted, learn("full", sampled_, seconds).predicted);
  // The twin has hardly moved: the net is what one short training makes of it.
  EXPECT_GE(momentum.revision, 3U);
  EXPECT_LT(momentum.after, full.after);
  EXPECT_NE(momentum.predicted, full.predicted);
}

// A head that learns reads the same embedding as before; weights that learn make another.
TEST_F(Adaptation, the_embedding_is_that_of_the_net_by_now) {
  const std::vector<double> seconds = times(sampled_, small_net(4), -0.5);
  const auto embedded = [&](const std::string& adapt, bool taught) {
    const auto model = make(adapt);
    const Status started = cost::start_embedding(*model);
    EXPECT_TRUE(started.ok()) << adapt << ": " << started.message();
    const size_t told = taught ? 80 : 0;
    EXPECT_TRUE(tell(*model, sampled_, seconds, 0, told).ok());
    EXPECT_EQ(model->revision() > 0, taught);
    return cost::embeddings_of(*model, {sampled_.queries.data(), 1}).value()[0];
  };
  const auto expect_near = [](const std::vector<float>& found, const std::vector<float>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
  };
  const std::vector<float> plain = embedded("none", false);
  expect_near(embedded("head", true), plain);
  if (!net::load_torch(HONE_TORCH_LIBRARY).ok()) GTEST_SKIP() << "this build is without libtorch";
  expect_near(embedded("full", false), plain);
  EXPECT_NE(embedded("full", true), plain);
}

// Whatever the file has learned, from scratch nothing is known of it.
TEST_F(Adaptation, random_weights_learn_from_measurements_alone) {
  if (!net::load_torch(HONE_TORCH_LIBRARY).ok()) GTEST_SKIP() << "this build is without libtorch";
  const std::vector<double> seconds = times(sampled_, small_net(4), -0.5);
  const auto begun = make("scratch")->predict(sampled_.queries).value();
  EXPECT_NE(begun, make("none")->predict(sampled_.queries).value());
  const Learned learned = learn("scratch", sampled_, seconds);
  ASSERT_TRUE(write_net(file_, small_net(5), small_card(0.1)).ok());
  EXPECT_EQ(begun, make("scratch")->predict(sampled_.queries).value());
  EXPECT_EQ(learned.predicted, learn("scratch", sampled_, seconds).predicted);
  EXPECT_GE(learned.revision, 3U);
  EXPECT_GT(learned.after, 0.7);
  EXPECT_GT(learned.after, learned.before + 0.1);
}

TEST_F(Adaptation, a_net_of_meta_learning_starts_each_time_from_its_file) {
  if (!net::load_torch(HONE_TORCH_LIBRARY).ok()) GTEST_SKIP() << "this build is without libtorch";
  const std::vector<double> seconds = times(sampled_, small_net(4), -0.5);
  // Told all at once, or in two parts, each of which it learns from.
  const auto predicted = [&](const std::string& options, bool parts) {
    NetCard card = small_card();
    card.notes["meta"] = "maml";
    card.notes["meta_options"] = options;
    EXPECT_TRUE(write_net(file_, net_, card).ok());
    const auto model = make("full");
    if (model == nullptr) return std::vector<double>();
    if (parts) {
      EXPECT_TRUE(tell(*model, sampled_, seconds, 0, 20).ok());
    }
    EXPECT_TRUE(tell(*model, sampled_, seconds, parts ? 20 : 0, 40).ok());
    EXPECT_EQ(model->revision(), parts ? 2U : 1U);
    return model->predict(sampled_.queries).value();
  };
  const auto farthest = [](const std::vector<double>& a, const std::vector<double>& b) {
    double most = 0;
    for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(std::log(a[i] / b[i])));
    return most;
  };
  const std::string usual = "steps=3,rate=0.05,shots=8";
  const std::vector<double> once = predicted(usual, false);
  EXPECT_LT(farthest(once, predicted(usual, true)), 1e-3);
  const std::vector<double> unmoved = predicted("steps=1,rate=1e-6", false);
  EXPECT_LT(farthest(unmoved, make("none")->predict(sampled_.queries).value()), 1e-3);
  EXPECT_GT(farthest(once, unmoved), 0.02);
  NetCard card = small_card();
  card.notes["meta"] = "maml", card.notes["meta_options"] = "steps=0";
  ASSERT_TRUE(write_net(file_, net_, card).ok());
  const std::string refused =
      make_cost_model({.cost = file_, .adapt = "full", .torch = HONE_TORCH_LIBRARY})
          .status()
          .message();
  EXPECT_TRUE(refused.starts_with(file_ + ": its meta-learning: steps: ")) << refused;
}

TEST_F(Adaptation, a_net_compiled_without_weights_reads_them_at_each_run) {
  NetFile file = read_net(file_).value();
  file.bytes = format_net(net_, file.card, NetWeights::kInputs);
  const CompiledNet compiled = compile_net(file, file_, folder_.path(), net_compiler()).value();
  const auto worker = NetWorker::open(compiled.path, net_.parameters, {});
  ASSERT_TRUE(worker.ok()) << worker.status().message();
  const std::span<const cost::Query> queries(sampled_.queries.data(), 10);
  const auto check = [&] {
    const std::vector<double> expected = plain_scores(net_, queries);
    const auto rows = (*worker)->run(queries).value();
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i].score, expected[i], 1e-4);
    return expected;
  };
  const std::vector<double> before = check();
  for (net::Parameter& parameter : net_.parameters) {
    for (float& value : parameter.values) value *= 0.9F;
  }
  EXPECT_NE(check(), before);
  EXPECT_NE(NetWorker::open(compiled.path, {}, {}).status().message().find("which is not known"),
            std::string::npos);
}

TEST(net_training_set, has_the_newest_first_and_tasks_of_two) {
  net::Net net;
  net.inputs = {{"task", {1}}};
  NetTrainingSet set;
  std::vector<float> number(1);
  const auto add = [&](uint64_t task, double seconds, float value) {
    number[0] = value;
    NetObservation observation = {.task = task, .seconds = seconds, .default_seconds = 2};
    observation.inputs = {number};
    set.add(observation);
  };
  EXPECT_EQ(set.pick(net, 10, 1).num_tasks(), 0);
  add(7, 4, 1), add(5, 1, 2), add(7, 2, 3);
  net::NetRows rows = set.pick(net, 10, 1);
  EXPECT_EQ(rows.group_begin, (std::vector<int64_t>{0, 2}));  // task 5 has one
  EXPECT_EQ(rows.batch.inputs[0], (std::vector<float>{3, 1}));
  EXPECT_EQ(rows.speed, (std::vector<float>{1, 0.5}));
  EXPECT_EQ(rows.log_time, (std::vector<float>{0, std::log(2.0F)}));
  add(5, 2, 4), add(5, 4, 5);
  rows = set.pick(net, 2, 1);  // no more than the new ones
  EXPECT_EQ(rows.batch.inputs[0], (std::vector<float>{5, 4}));
  EXPECT_EQ(rows.speed, (std::vector<float>{0.25, 0.5}));  // the best was before them
  for (size_t i = 0; i < NetTrainingSet::kMaximum; ++i) add(9, 1, static_cast<float>(i));
  EXPECT_EQ(set.size(), NetTrainingSet::kMaximum);
  EXPECT_EQ(set.pick(net, 10, 1).num_tasks(), 1);
}

}  // namespace
}  // namespace hone
