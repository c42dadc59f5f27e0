#include "hone/commands/record_check.h"

#include <gtest/gtest.h>

#include "hone/base/hash.h"
#include "hone/compute/dag_testing.h"
#include "hone/compute/dag_text.h"
#include "hone/schedule/step.h"
#include "hone/space/space.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

const compute::Dag& product() {
  static const compute::Dag dag = compute::testing::gemm(8, 64, 32);
  return dag;
}

trial::Record sound_record() {
  const space::Space space = space::Space::create(product(), target::host()).value();
  trial::Record record;
  record.id = 7;
  record.task = compute::task_key(product());
  record.task_text = compute::to_text(product());
  record.device = "test";
  record.version = kScheduleVersion;
  record.algorithm = "direct";
  record.steps = schedule::to_string(space.steps(space.default_point()));
  record.times = {1e-3};
  record.centre = record.low = record.high = 1e-3;
  record.verified = true;
  return record;
}

std::vector<std::string> problems_of(const trial::Record& record) {
  return RecordCheck().problems_of(record);
}

TEST(record_check, a_sound_record_has_no_problems) {
  EXPECT_TRUE(problems_of(sound_record()).empty()) << problems_of(sound_record())[0];
  trial::Record without_text = sound_record();
  without_text.task_text.clear();
  EXPECT_TRUE(problems_of(without_text).empty());
}

TEST(record_check, a_text_of_another_task_is_named_once) {
  trial::Record record = sound_record();
  const compute::Dag other = compute::testing::gemm(8, 64, 33);
  record.task_text = compute::to_text(other);
  RecordCheck check;
  const std::vector<std::string> problems = check.problems_of(record);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0], fmt::format("task {} (of trial 7): its text is that of the task {}",
                                     hash_hex(record.task), hash_hex(compute::task_key(other))));
  EXPECT_TRUE(check.problems_of(record).empty());
  record.task_text = "no task";
  ASSERT_EQ(problems_of(record).size(), 1U);
  EXPECT_TRUE(problems_of(record)[0].starts_with(
      fmt::format("task {} (of trial 7): its text is no task: ", hash_hex(record.task))));
  record.version = "of old";
  EXPECT_TRUE(problems_of(record).empty());
}

TEST(record_check, an_accuracy_or_an_algorithm_that_is_not_of_the_steps_is_named) {
  trial::Record record = sound_record();
  record.accuracy = trial::Accuracy::kFast;
  EXPECT_EQ(problems_of(record),
            std::vector<std::string>{
                "trial 7: a record has the accuracy fast, but its steps need strict"});
  record.accuracy = trial::Accuracy::kStrict;
  record.algorithm = "strassen";
  EXPECT_EQ(problems_of(record), std::vector<std::string>{"trial 7: its algorithm is 'strassen', "
                                                          "but its steps are of 'direct'"});
}

TEST(record_check, steps_that_do_not_apply_are_named) {
  trial::Record record = sound_record();
  record.steps = "unroll(nobody, x)\n";
  ASSERT_EQ(problems_of(record).size(), 1U);
  EXPECT_TRUE(problems_of(record)[0].starts_with("trial 7: its steps do not apply: "))
      << problems_of(record)[0];
  record.outcome = trial::Outcome::kCompile;
  record.verified = false;
  EXPECT_TRUE(problems_of(record).empty());
  record.steps = "dance";
  ASSERT_EQ(problems_of(record).size(), 1U);
  EXPECT_TRUE(problems_of(record)[0].starts_with("trial 7: "));
}

}  // namespace
}  // namespace hone
