#include "hone/space/rules/cpu/rules.h"

#include <gtest/gtest.h>

#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/space/rules/roots.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using compute::Dag;
using namespace compute::testing;  // NOLINT

// Tasks of which each rule finds at least one.
std::vector<Dag> tasks() {
  return {softmax(3, 40, 1),
          centred_rows(1, 1 << 17),
          attention(2, 64, 128, 16),
          attention(2, 64, 1030, 16),
          separable(9, 9, 16, 24),
          running_sum(1, 400'000),
          gemm(512, 512, 512),
          few_columns(33, 1, 16381, true),
          gemm(7, 1, 4001),
          few_columns(97, 3, 517, true),
          conv2d({.h = 16, .w = 16, .ic = 64, .oc = 32}),
          conv2d({.h = 17, .w = 17, .ic = 64, .oc = 32, .stride = 2})};
}

Task task_of(const Dag& dag, const target::Target& target, trial::Accuracy accuracy) {
  Task task{dag, accuracy, {target, schedule::initial_state(dag)}};
  EXPECT_TRUE(simplify(task).ok());
  return task;
}

// The names of the rules that apply to a task and build something.
std::set<std::string_view> builders(const Task& task) {
  std::set<std::string_view> found;
  const auto note = [&](std::span<const Rule> rules, const SketchBuilder& start) {
    for (const Rule& rule : rules) {
      if (!rule.applies(task)) continue;
      SketchBuilder builder = start;
      if (rule.build(builder, task) == Fit::kNone) continue;
      EXPECT_FALSE(builder.groups.empty()) << rule.name;
      found.insert(rule.name);
    }
  };
  note(cpu_task_rules(), task.whole);
  note(cpu_stage_rules(), task.stages);
  return found;
}

TEST(rules, each_has_its_name_and_builds_a_sketch_of_some_task) {
  const target::Target target = narrow(32);
  std::set<std::string_view> found, names;
  for (const Dag& dag : tasks())
    found.merge(builders(task_of(dag, target, trial::Accuracy::kDefault)));
  for (const auto rules : {cpu_task_rules(), cpu_stage_rules()}) {
    for (const Rule& rule : rules) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
  }
  EXPECT_EQ(found, names);
}

TEST(rules, those_that_round_more_are_not_asked_where_that_is_not_allowed) {
  const target::Target target = narrow(32);
  const Dag dag = conv2d({.h = 16, .w = 16, .ic = 64, .oc = 32});
  EXPECT_TRUE(builders(task_of(dag, target, trial::Accuracy::kDefault)).contains("winograd_4"));
  const auto strict = builders(task_of(dag, target, trial::Accuracy::kStrict));
  EXPECT_TRUE(strict.contains("direct"));
  for (const std::string_view name : strict) EXPECT_FALSE(name.starts_with("winograd")) << name;
}

TEST(rules, the_task_as_a_whole_goes_to_one_of_them) {
  const target::Target target = narrow(32);
  const Dag dag = softmax(3, 40, 1);
  Task task = task_of(dag, target, trial::Accuracy::kDefault);
  EXPECT_TRUE(builders(task).contains("rows"));
  task.covered = true;
  EXPECT_FALSE(builders(task).contains("rows"));
}

}  // namespace
}  // namespace hone::space
