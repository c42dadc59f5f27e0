#include "size_report.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TaskSummary task_of_two_schedules() {
  TaskSummary task;
  task.steps = "split(y, 8)\n";
  task.sizes = {{"batch*seq",
                 3,
                 {{1, "batch=1, seq=1"}, {9, "batch=1, seq=9"}, {64, "batch=4, seq=16"}},
                 {{1, 5, "split(y, 1)\n", {{1e-6, true}, {5e-6, false}, {9e-5, true}}},
                  {6, 64, "split(y, 8)\n", {{4e-6, true}, {4e-6, false}, {2e-5, true}}}}}};
  return task;
}

TEST(size_report, tells_all_of_a_task) {
  const std::string text = sizes_text(task_of_two_schedules());
  EXPECT_EQ(text,
            "sizes of 3 calls: batch*seq decides which schedule runs; 2 of 3 compared sizes are "
            "measured (~: predicted)\n"
            "schedule  batch*seq     at 1      at 9    at 64\n"
            "-----------------------------------------------\n"
            "A         1..5       1.00 us  ~5.00 us  90.0 us\n"
            "B         6..64      4.00 us  ~4.00 us  20.0 us\n"
            "batch*seq is 1 with batch=1, seq=1\n"
            "batch*seq is 9 with batch=1, seq=9\n"
            "batch*seq is 64 with batch=4, seq=16\n"
            "schedule A:\nsplit(y, 1)\n\n\n");
  EXPECT_EQ(sizes_text(TaskSummary()), "");
}

TEST(size_report, tells_a_line_of_each_kernel) {
  TaskSummary alone;
  alone.sizes = {
      {"seq", 1, {{1, "seq=1"}, {16, "seq=16"}}, {{1, 16, "", {{1e-6, false}, {2e-6, true}}}}}};
  const std::vector<TaskSummary> tasks = {TaskSummary(), task_of_two_schedules(), alone};
  EXPECT_EQ(sizes_table(tasks),
            "task  decided by  schedules at  measured at  calls  smallest  largest\n"
            "---------------------------------------------------------------------\n"
            "2     batch*seq   1..5, 6..64   1, 64            3   1.00 us  20.0 us\n"
            "3     seq         1..16         16               1  ~1.00 us  2.00 us\n");
  EXPECT_EQ(sizes_line(tasks),
            "1 of 2 kernels that vary have other schedules for smaller sizes; measured times "
            "decided for 1, predictions for 1\n");
  EXPECT_EQ(sizes_table({}), "");
  EXPECT_EQ(sizes_line(std::vector<TaskSummary>{TaskSummary()}), "");
}

TEST(size_report, is_json) {
  const Json json = sizes_json(task_of_two_schedules());
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["decided_by"], "batch*seq");
  EXPECT_EQ(json[0]["points"][1], Json({{"value", 9}, {"run", "batch=1, seq=9"}}));
  EXPECT_EQ(json[0]["schedules"][0]["most"], 5);
  EXPECT_EQ(json[0]["schedules"][1]["measured"], Json({true, false, true}));
}

}  // namespace
}  // namespace hone::tool
