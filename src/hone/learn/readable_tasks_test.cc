#include "hone/learn/readable_tasks.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/cost/net/family.h"

namespace hone::learn {
namespace {

// A product whose schedules are these.
TaskTrials product(uint64_t key, std::initializer_list<const char*> schedules) {
  const auto dag = std::make_shared<compute::Dag>(compute::testing::gemm(64, 32, 512));
  TaskTrials task{.key = key, .kernel_class = "gemm", .dag = dag};
  for (const char* steps : schedules) task.trials.push_back({*schedule::parse_steps(steps), 1e-3});
  return task;
}

cost::net::Net metatune(double super) {
  const cost::net::Family* family = cost::net::find_family("metatune").value();
  return cost::net::make_net(*family, cost::net::all_inputs(), {{"super", super}}).value();
}

// The second schedule of the second task has one loop more over terms than the template.
Dataset some_tasks() {
  Dataset dataset;
  dataset.tasks = {product(1, {"", "split(matmul, k, [2, 2, 2])"}),
                   product(2, {"", "split(matmul, k, [2, 2, 2, 2])"})};
  return dataset;
}

TEST(readable_tasks, those_larger_than_the_template_are_left_out_and_counted) {
  const target::Target target = target::find("x86-64-avx512").value();
  Dataset dataset = some_tasks();
  const Result<UnreadableTasks> found = remove_unreadable(dataset, target, metatune(1), 2);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->keys, (std::set<uint64_t>{2}));
  EXPECT_EQ(found->schedules, 2);
  EXPECT_EQ(
      found->why,
      "gemm: the program's graph is larger than the template of graphs: matmul has 5 loops "
      "over terms or of a body, expected at most 4; use a net of graphs as they are (super=0)");
  ASSERT_EQ(dataset.tasks.size(), 1U);
  EXPECT_EQ(dataset.tasks[0].key, 1U);
}

// Of a larger graph than the plain form has room for, the lightest statements are left out.
TEST(readable_tasks, a_net_of_graphs_as_they_are_reads_all) {
  const target::Target target = target::find("x86-64-avx512").value();
  Dataset dataset = some_tasks();
  const Result<UnreadableTasks> found = remove_unreadable(dataset, target, metatune(0), 2);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found->keys.empty());
  EXPECT_EQ(dataset.tasks.size(), 2U);
}

}  // namespace
}  // namespace hone::learn
