#include "hone/session/refiner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hone/base/file.h"
#include "hone/graph/test_model.h"
#include "hone/session/compile_graph.h"
#include "hone/session/static_model.h"
#include "hone/space/space.h"

namespace hone {
namespace {

graph::Graph one_product() {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {16, 32});
  model.constant("w", graph::random_tensor({32, 48}, rng));
  model.node("MatMul", {"x", "w"}, {"y"}).output("y");
  return model.graph();
}

CompileOptions options_for(const std::string& refine) {
  CompileOptions options;
  options.records.use_db = false;
  options.target = {.device = "x86-64-avx2", .threads = 1};
  options.advanced.cost = "analytic";
  options.advanced.refine = refine;
  return options;
}

// Predicts these seconds, one after the other.
struct Told final : cost::CostModel {
  explicit Told(std::vector<double> what) : seconds(std::move(what)) {}
  const std::vector<double> seconds;
  [[nodiscard]] std::string_view name() const override { return "told"; }
  Result<std::vector<double>> predict(std::span<const cost::Query> queries) const override {
    if (queries.size() != seconds.size()) return error(Code::kInternal, "not told");
    return seconds;
  }
  Status update(std::span<const cost::Observation>) override { return ok_status(); }
};

TEST(refiner, both_models_decide_by_their_weights) {
  const auto session = Session::open(options_for("")).value();
  const Untuned made = make_untuned(*session, one_product(), options_for("")).value();
  const std::vector<Rival> rivals = {
      {&made.schedules[0], 1}, {&made.schedules[0], 2}, {&made.schedules[0], 1.5}};
  const auto choice = [&](std::vector<double> second, double weight) {
    const Refiner refiner{"told", std::make_shared<Told>(std::move(second)), {3, weight}};
    return refined_choice(refiner, made.model.dag(0), session->target(), 1, rivals, 0.03);
  };
  EXPECT_EQ(choice({1, 0.6, 1}, 1).value(), 1U);
  EXPECT_EQ(choice({1, 0.6, 1}, 0.5).value(), 0U);       // 1 : sqrt(2 * 0.6)
  EXPECT_EQ(choice({1, 0.6, 0.5}, 0.5).value(), 2U);     // 1 : sqrt(1.5 * 0.5)
  EXPECT_EQ(choice({1, 0.98, 1}, 1).value(), 0U);        // less than the margin
  EXPECT_EQ(choice({INFINITY, 3, 2}, 0.5).value(), 2U);  // the first cannot be compiled
  EXPECT_FALSE(choice({1}, 1).ok());
}

// A score that counts the cycles of the list scheduler alone.
std::string score_of_cycles(const std::string& instructions) {
  cost::StaticScore score{instructions, {}, {}};
  for (const std::string_view name : cost::static_feature_names())
    score.coefficients.push_back(name == "cycles" ? 1 : 0);
  return cost::format(score);
}

TEST(refiner, a_score_of_machine_code_chooses_among_the_best_predicted) {
  const TempDir folder = TempDir::create().value();
  const std::string file = folder.file("static.model");
  ASSERT_TRUE(write_file_atomic(file, score_of_cycles("x86_64 with 32 bytes")).ok());
  const CompileOptions wrong = options_for(file + ":candidates=4,weight=1");
  const auto refused = Session::open(wrong).value();
  const Result<Untuned> none = make_untuned(*refused, one_product(), wrong);
  EXPECT_NE(
      none.status().message().find("fitted for x86_64 with 32 bytes, expected x86_64 with 256"),
      std::string::npos)
      << none.status().message();

  ASSERT_TRUE(write_file_atomic(file, score_of_cycles("x86_64 with 256 bits")).ok());
  const auto session = Session::open(wrong).value();
  const Untuned made = make_untuned(*session, one_product(), wrong).value();
  EXPECT_EQ(made.model.refined.compared, 1);
  EXPECT_EQ(made.model.refined.candidates, 4);
  EXPECT_GT(made.model.refined.seconds, 0);
  // What was chosen has the fewest cycles of all four, but for the margin.
  const auto cycles = [&](const schedule::Steps& steps) {
    const space::Candidate candidate = space::make_candidate(made.model.dag(0), steps).value();
    return static_features({&candidate, &session->target(), 1, 1}).value().at(7);
  };
  ASSERT_EQ(cost::static_feature_names()[7], "cycles");
  std::vector<ChosenSchedule> rivals;
  const ChosenSchedule first =
      unmeasured_schedule(made.model, 0, made.sources, wrong, &rivals).value();
  ASSERT_EQ(rivals.size(), 3U);
  double least = cycles(first.steps);
  for (const ChosenSchedule& rival : rivals) {
    EXPECT_NE(rival.steps, first.steps);
    least = std::min(least, cycles(rival.steps));
  }
  EXPECT_LE(0.97 * cycles(made.schedules[0]), least);
}

TEST(refiner, bad_options_name_what_is_wrong) {
  for (const auto& [text, message] :
       {std::pair("analytic:candidates=1", "candidates"), std::pair("analytic:weigth=1", "weigth"),
        std::pair("analytik", "analytik"), std::pair("missing/static.model:weight=1", "missing")}) {
    const auto session = Session::open(options_for(text));
    ASSERT_FALSE(session.ok()) << text;
    EXPECT_NE(session.status().message().find(message), std::string::npos)
        << session.status().message();
  }
  EXPECT_TRUE(Session::open(options_for("analytic:candidates=3")).ok());
}

TEST(refiner, a_filter_takes_a_score_of_the_same_instructions_alone) {
  const TempDir folder = TempDir::create().value();
  const std::string file = folder.file("static.model");
  const auto session = Session::open(options_for("")).value();
  const auto message = [&](const std::string& text) {
    return make_code_filter(text, session->target()).status().message();
  };
  ASSERT_TRUE(write_file_atomic(file, "something").ok());
  EXPECT_NE(message(file).find("no score of machine code"), std::string::npos) << message(file);
  ASSERT_TRUE(write_file_atomic(file, score_of_cycles("aarch64 with 128 bits")).ok());
  EXPECT_NE(message(file).find("fitted for aarch64"), std::string::npos) << message(file);
  ASSERT_TRUE(write_file_atomic(file, score_of_cycles("x86_64 with 256 bits")).ok());
  EXPECT_NE(message(file + ":factor=0").find("factor"), std::string::npos);
  EXPECT_EQ(message(file + ":factor=3"), "");
}

}  // namespace
}  // namespace hone
