#include "hone/resolve_options.h"

#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone {
namespace {

TEST(resolve_options, names_that_stand_for_nothing_are_errors) {
  CompileOptions options;
  options.use_db = false;
  EXPECT_TRUE(resolve_options(options).ok());
  for (std::string* name : {&options.cost, &options.transfer, &options.accuracy, &options.device}) {
    const std::string known = *name;
    *name = "guess";
    const Status status = resolve_options(options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("guess"), std::string::npos) << status.message();
    *name = known;
  }
}

TEST(resolve_options, a_search_is_guided_by_the_cost_model_unless_another_one_is_named) {
  TuneOptions options;
  options.compile.use_db = false;
  options.compile.cost = "gbdt";
  for (const char* same : {"", "gbdt"}) {
    options.guide = same;
    const TuneModels models = resolve_options(options).value();
    EXPECT_EQ(models.guide, models.cost);
    EXPECT_EQ(models.cost->name(), "gbdt");
  }
  options.guide = "combined";
  const TuneModels models = resolve_options(options).value();
  EXPECT_NE(models.guide, models.cost);
  EXPECT_EQ(models.guide->name(), "combined");
  EXPECT_EQ(models.cost->name(), "gbdt");
  options.guide = "guess";
  EXPECT_NE(resolve_options(options).status().message().find("guess"), std::string::npos);
  options.guide = "";
  options.adapt = "head";  // of trees
  EXPECT_NE(resolve_options(options).status().message().find("gbdt"), std::string::npos);
}

// A net's file is read, and its library loaded, once in a run.
TEST(resolve_options, tasks_take_the_cost_model_that_the_options_were_resolved_to) {
  CompileOptions options;
  options.use_db = false;
  graph::TestModel model;
  model.input("x", {4, 4}).node("Relu", {"x"}, {"y"}).output("y");
  const CostModelPtr cost = resolve_options(options).value();
  EXPECT_EQ(make_tasks(model.graph(), options, {.cost = cost})->cost, cost);
}

}  // namespace
}  // namespace hone
