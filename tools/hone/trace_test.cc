#include "trace.h"

#include <gtest/gtest.h>

#include <map>

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
    if (event["ph"] == "M" && event["name"] != "thread_sort_index")
      names.push_back(event["args"]["name"]);
    if (event["ph"] == "X") spans.push_back(event);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"model.so", "steps", "thread 0", "thread 1"}));
  ASSERT_EQ(spans.size(), 7U);  // two steps in each run, three parts of them on threads
  EXPECT_EQ(spans[1]["name"], "last");
  EXPECT_NEAR(spans[1]["ts"].get<double>(), 2, 0.0011);
  EXPECT_EQ(spans[3]["tid"], 3);
  EXPECT_EQ(spans[3]["name"], "first");
  EXPECT_NEAR(spans[3]["ts"].get<double>(), 0.5, 0.0011);
  EXPECT_NEAR(spans[3]["dur"].get<double>(), 1, 0.0011);
  EXPECT_EQ(spans[3]["args"]["flops"], 100);
  EXPECT_EQ(spans[3]["args"]["kernel"], "gemm");
  EXPECT_NEAR(spans[5]["ts"].get<double>(), 1000, 0.0011);
}

// The Trace Event Format is described in
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
TEST(trace, is_in_the_trace_event_format) {
  const std::vector<StepTime> steps = {{"first", "gemm", 0, 2e-6}, {"", "relu", 1, 1e-6}};
  Trace trace("model.so");
  trace.add_run(0, steps, std::vector<ThreadWork>{{0, 0, 0.1e-6, 1.9e-6}, {1, 1, 2e-6, 3e-6}});
  const Json json = trace.json();
  std::map<int, std::map<std::string, Json>> rows;
  for (const Json& event : json["traceEvents"]) {
    ASSERT_TRUE(event["name"].is_string() && !event["name"].get<std::string>().empty());
    EXPECT_GT(event["pid"], 0) << "0 is the idle process";
    EXPECT_GT(event["tid"], 0) << "0 is the idle thread";
    EXPECT_GE(event["ts"], 0);
    ASSERT_TRUE(event["args"].is_object());
    if (event["ph"] == "M") {
      rows[event["tid"]][event["name"]] = event["args"];
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    EXPECT_TRUE(event["cat"].is_string());
    EXPECT_GT(event["dur"], 0);
    EXPECT_TRUE(rows.contains(event["tid"])) << "a row is named before its first step";
  }
  ASSERT_EQ(rows.size(), 3U);
  int place = 0;
  for (const auto& [tid, labels] : rows) {
    EXPECT_TRUE(labels.contains("thread_name"));
    EXPECT_EQ(labels.at("thread_sort_index")["sort_index"], ++place);
  }
  EXPECT_EQ(rows[1]["thread_name"]["name"], "steps");
  EXPECT_EQ(json["displayTimeUnit"], "ns");
}

// Perfetto cuts times to nanoseconds, and drops a slice that begins within another one.
TEST(trace, steps_do_not_overlap_when_times_are_cut_to_nanoseconds) {
  const std::vector<StepTime> steps(1000, {"step", "relu", 0, 1.2345678e-6});
  Trace trace("model.so");
  trace.add_run(0.1, steps, {});
  const Json json = trace.json();
  int64_t end = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto cut = [&](const char* name) {
      return static_cast<int64_t>(event[name].get<double>() * 1000);
    };
    EXPECT_GE(cut("ts"), end);
    end = cut("ts") + cut("dur");
  }
  EXPECT_NEAR(static_cast<double>(end), 0.1e9 + 1234567.8, 2);
}

}  // namespace
}  // namespace hone::tool
