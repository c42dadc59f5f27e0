#include "hone/db/sensitivity_store.h"

#include <gtest/gtest.h>

#include "hone/db/schema.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

std::vector<trial::TaskSensitivity> sample() {
  return {{1, "conv2d+relu", "conv2d(oc=8)", 2, 5, {{"column", {0.25, 0.5}}, {"order", {0, 0.1}}}},
          {0xffffffffffffffff, "gemm", "gemm(m=3)", 2, 6, {{"lanes", {1.5, 0}}}, 0.75}};
}

TEST(sensitivity_store, gives_back_every_effect_of_that_device_and_number_of_threads) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  const std::vector<trial::TaskSensitivity> tasks = sample();
  ASSERT_TRUE(save_sensitivities(path, "a", tasks).ok());
  const auto back = load_sensitivities(path, "a", 2);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, tasks);
  EXPECT_TRUE(load_sensitivities(path, "a", 1)->empty());
  EXPECT_TRUE(load_sensitivities(path, "b", 2)->empty());
}

TEST(sensitivity_store, a_task_that_is_measured_again_loses_its_old_roles) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  std::vector<trial::TaskSensitivity> tasks = sample();
  ASSERT_TRUE(save_sensitivities(path, "a", tasks).ok());
  ASSERT_TRUE(save_sensitivities(path, "b", tasks).ok());
  tasks[0].roles = {{"parallel", {0.75, 0}}};
  ASSERT_TRUE(save_sensitivities(path, "a", {tasks.data(), 1}).ok());
  EXPECT_EQ(*load_sensitivities(path, "a", 2), tasks);
  EXPECT_EQ(*load_sensitivities(path, "b", 2), sample());
}

TEST(sensitivity_store, refuses_what_are_no_effects) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  std::vector<trial::TaskSensitivity> bad = sample();
  bad[1].roles["lanes"].gain = -1;
  EXPECT_FALSE(save_sensitivities(path, "a", bad).ok());
  bad = sample();
  bad[0].memory = 1.5;
  EXPECT_FALSE(save_sensitivities(path, "a", bad).ok());
  EXPECT_FALSE(save_sensitivities(path, "", sample()).ok());
  ASSERT_TRUE(save_sensitivities(path, "a", sample()).ok());
  run_sql(path, "UPDATE sensitivity SET role = '' WHERE role = 'lanes'");
  const auto back = load_sensitivities(path, "a", 2);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.status().message().find(fmt::format("database {} is corrupt (", path)), 0U);
}

TEST(sensitivity_store, what_has_another_version_is_not_used) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  ASSERT_TRUE(save_sensitivities(path, "a", sample()).ok());
  run_sql(path, "UPDATE sensitivity SET version = 7 WHERE role = 'lanes'");
  EXPECT_EQ(load_sensitivities(path, "a", 2)->size(), 1U);
  run_sql(path, "UPDATE sensitivity SET version = 7");
  const auto back = load_sensitivities(path, "a", 2);
  EXPECT_EQ(back.status().message(),
            fmt::format("database {}: sensitivities of a have version 7, expected 1: measure them "
                        "again with hone sensitivity",
                        path));
}

// Undoes what version 12 adds.
constexpr const char* kWithoutParts = "DROP INDEX trial_part; ALTER TABLE trial DROP COLUMN part; ";

TEST(sensitivity_store, a_database_of_version_9_has_none_until_some_are_saved) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  ASSERT_TRUE(open_store(path).ok());
  run_sql(path, kWithoutParts + std::string("DROP TABLE sensitivity; PRAGMA user_version = 9"));
  const auto none = load_sensitivities(path, "a", 2);
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_TRUE(none->empty());
  ASSERT_TRUE(save_sensitivities(path, "a", sample()).ok());
  EXPECT_EQ(load_sensitivities(path, "a", 2)->size(), 2U);
}

// Records from before tasks had a share of memory have none, also where nothing can be changed.
TEST(sensitivity_store, what_version_10_has_goes_on) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  ASSERT_TRUE(save_sensitivities(path, "a", sample()).ok());
  run_sql(path, kWithoutParts + std::string("ALTER TABLE sensitivity DROP COLUMN memory; PRAGMA "
                                            "user_version = 10"));
  std::vector<trial::TaskSensitivity> tasks = sample();
  tasks[1].memory.reset();
  const auto old = load_sensitivities(path, "a", 2);
  ASSERT_TRUE(old.ok()) << old.status().message();
  EXPECT_EQ(*old, tasks);
  tasks[0].memory = 0.25;
  ASSERT_TRUE(save_sensitivities(path, "a", {tasks.data(), 1}).ok());
  EXPECT_EQ(*load_sensitivities(path, "a", 2), tasks);
}

}  // namespace
}  // namespace hone::db
