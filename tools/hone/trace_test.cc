#include "trace.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TEST(trace, has_a_row_of_steps_and_one_per_thread) {
  const std::vector<StepTime> steps = {{"first", "gemm", 0, 2e-6, 100, 100, 50},
                                       {"left out", "relu", 1, 0},
                                       {"last", "relu", 1, 1e-6}};
  Trace trace("model.so");
  trace.add_run(
      0, steps,
      std::vector<ThreadWork>{
          {0, 0, 0.1e-6, 1.9e-6}, {0, 1, 0.5e-6, 1.5e-6}, {2, 0, 2.1e-6, 2.9e-6}, {7, 0, 1, 2}});
  trace.add_run(1e-3, steps, {});
  const Json json = trace.json();
  std::vector<std::string> names;
  std::vector<Json> spans;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "M") names.push_back(event["args"]["name"]);
    if (event["ph"] == "X") spans.push_back(event);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"model.so", "steps", "thread 0", "thread 1"}));
  ASSERT_EQ(spans.size(), 7U);  // two steps in each run, three parts of them on threads
  EXPECT_EQ(spans[1]["name"], "last");
  EXPECT_DOUBLE_EQ(spans[1]["ts"].get<double>(), 2);
  EXPECT_EQ(spans[3]["tid"], 2);
  EXPECT_EQ(spans[3]["name"], "first");
  EXPECT_DOUBLE_EQ(spans[3]["ts"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(spans[3]["dur"].get<double>(), 1);
  EXPECT_EQ(spans[3]["args"]["flops"], 100);
  EXPECT_EQ(spans[3]["args"]["kernel"], "gemm");
  EXPECT_DOUBLE_EQ(spans[5]["ts"].get<double>(), 1000);
}

}  // namespace
}  // namespace hone::tool
