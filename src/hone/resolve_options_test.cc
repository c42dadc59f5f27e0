#include "hone/resolve_options.h"

#include <gtest/gtest.h>

#include "hone/graph/test_model.h"

namespace hone {
namespace {

TEST(resolve_options, names_that_stand_for_nothing_are_errors) {
  CompileOptions options;
  options.use_db = false;
  EXPECT_TRUE(resolve_options(options).ok());
  for (std::string* name :
       {&options.cost, &options.transfer, &options.accuracy, &options.device, &options.adapt}) {
    const std::string known = *name;
    *name = "guess";
    const Status status = resolve_options(options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("guess"), std::string::npos) << status.message();
    *name = known;
  }
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
