#include "hone/db/roofline_store.h"

#include <gtest/gtest.h>

#include "hone/db/schema.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

trial::Roofline sample() {
  return {.cores = 4,
          .flops = {1.5e11, 2.9e11},
          .fork_join = {{2, 0.75e-6}, {4, 1.25e-6}},
          .levels = {{1, 49'152, 1, {4e11, 8e11}, {2e11, 4e11}},
                     {2, 2'097'152, 1, {1e11, 2e11}, {5e10, 1e11}},
                     {0, 0, 2, {1e10, 1.5e10}, {8e9, 1.2e10}}},
          .unix_time = 1'700'000'000,
          .host_load = 0.25};
}

// A database as the first release made it, with a trial.
void make_version_1(const std::string& path) {
  run_sql(path, fmt::format("{}; PRAGMA application_id = {}; PRAGMA user_version = 1;"
                            "INSERT INTO task VALUES (1, '0000000000000001', 'conv', '');"
                            "INSERT INTO device VALUES (1, 'avx512-x-2c');"
                            "INSERT INTO trial VALUES (1, 1, 1, 2, '1', 'direct', 's', 'd', 'ok', "
                            "'', x'fca9f1d24d62503f', 1e-3, 1e-3, 1e-3, 1, '0000000000000001', 5, "
                            "0.5, 'm')",
                            kMigrations[0], kApplicationId));
}

TEST(roofline_store, gives_back_every_figure) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  const trial::Roofline r = sample();
  ASSERT_TRUE(save_roofline(path, "host-2c", r).ok());
  const auto back = load_roofline(path, "host-2c");
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_TRUE(back->has_value());
  EXPECT_EQ((*back)->cores, r.cores);
  EXPECT_EQ((*back)->flops.one, r.flops.one);
  EXPECT_EQ((*back)->flops.all, r.flops.all);
  ASSERT_EQ((*back)->fork_join.size(), r.fork_join.size());
  for (size_t i = 0; i < r.fork_join.size(); ++i) {
    EXPECT_EQ((*back)->fork_join[i].threads, r.fork_join[i].threads);
    EXPECT_EQ((*back)->fork_join[i].seconds, r.fork_join[i].seconds);
  }
  EXPECT_EQ((*back)->unix_time, r.unix_time);
  EXPECT_EQ((*back)->host_load, r.host_load);
  ASSERT_EQ((*back)->levels.size(), r.levels.size());
  for (size_t i = 0; i < r.levels.size(); ++i) {
    EXPECT_EQ((*back)->levels[i].level, r.levels[i].level);
    EXPECT_EQ((*back)->levels[i].bytes, r.levels[i].bytes);
    EXPECT_EQ((*back)->levels[i].shared_by, r.levels[i].shared_by);
    EXPECT_EQ((*back)->levels[i].read.one, r.levels[i].read.one);
    EXPECT_EQ((*back)->levels[i].read.all, r.levels[i].read.all);
    EXPECT_EQ((*back)->levels[i].write.one, r.levels[i].write.one);
    EXPECT_EQ((*back)->levels[i].write.all, r.levels[i].write.all);
  }
}

TEST(roofline_store, new_figures_replace_the_old_ones_of_that_device_only) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  ASSERT_TRUE(save_roofline(path, "a", sample()).ok());
  ASSERT_TRUE(save_roofline(path, "b", sample()).ok());
  trial::Roofline fewer = sample();
  fewer.levels.erase(fewer.levels.begin());
  fewer.flops.one = 7;
  ASSERT_TRUE(save_roofline(path, "a", fewer).ok());
  EXPECT_EQ((*load_roofline(path, "a"))->levels.size(), 2U);
  EXPECT_EQ((*load_roofline(path, "a"))->flops.one, 7);
  EXPECT_EQ((*load_roofline(path, "b"))->levels.size(), 3U);
  EXPECT_FALSE(load_roofline(path, "c")->has_value());
}

TEST(roofline_store, lies_beside_the_trials) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  {
    const auto store = open_store(path);
    ASSERT_TRUE((*store)->add(std::vector{sample_record(1, 1e-3)}).ok());
  }
  ASSERT_TRUE(save_roofline(path, "avx512-x-2c", sample()).ok());
  EXPECT_TRUE(load_roofline(path, "avx512-x-2c")->has_value());
  const auto store = open_store(path);
  EXPECT_EQ((*store)->best(best_of(1))->size(), 1U);
}

TEST(roofline_store, refuses_what_are_no_figures) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  trial::Roofline bad = sample();
  bad.levels.clear();
  EXPECT_FALSE(save_roofline(path, "a", bad).ok());
  EXPECT_FALSE(save_roofline(path, "", sample()).ok());
  ASSERT_TRUE(save_roofline(path, "a", sample()).ok());
  run_sql(path, "UPDATE roofline_level SET read_all = -1");
  const auto back = load_roofline(path, "a");
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.status().message().find(fmt::format("database {} is corrupt (", path)), 0U);
}

TEST(roofline_store, a_missing_file_is_an_error_but_not_at_the_default_path) {
  const TestFolder folder;
  EXPECT_FALSE(load_roofline(folder.file("no.db"), "a").ok());
  setenv("XDG_DATA_HOME", folder.path().c_str(), 1);
  const auto none = load_roofline("", "a");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->has_value());
  EXPECT_TRUE(save_roofline("", "a", sample()).ok());
  EXPECT_TRUE(load_roofline("", "a")->has_value());
  unsetenv("XDG_DATA_HOME");
}

TEST(migration, version_1_can_be_read_as_it_is) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_version_1(path);
  const auto store = open_store(path, {.read_only = true});
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ((*store)->best(best_of(1))->size(), 1U);
  const auto none = load_roofline(path, "avx512-x-2c");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->has_value());
}

TEST(migration, version_2_has_no_figures_yet) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_version_1(path);
  run_sql(path, std::string(kMigrations[1]) + "; PRAGMA user_version = 2");
  const auto none = load_roofline(path, "avx512-x-2c");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->has_value());
}

// It had the fork and join of all cores only.
TEST(migration, figures_of_version_6_are_read_as_they_are) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_version_1(path);
  for (int v = 1; v < 6; ++v) run_sql(path, kMigrations[v]);
  run_sql(path,
          "PRAGMA user_version = 6; INSERT INTO roofline VALUES (1, 8, 1e11, 8e11, 2e-6, 5, 0.5);"
          "INSERT INTO roofline_level VALUES (1, 0, 0, 0, 8, 1e10, 2e10, 1e10, 2e10)");
  for (const bool migrated : {false, true}) {
    ASSERT_TRUE(open_store(path, {.read_only = !migrated}).ok());
    const auto back = load_roofline(path, "avx512-x-2c");
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_TRUE(back->has_value());
    ASSERT_EQ((*back)->fork_join.size(), 1U);
    EXPECT_EQ((*back)->fork_join[0].threads, 8);
    EXPECT_EQ((*back)->fork_join[0].seconds, 2e-6);
  }
}

TEST(migration, version_1_becomes_the_newest_and_keeps_its_trials) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_version_1(path);
  ASSERT_TRUE(save_roofline(path, "avx512-x-2c", sample()).ok());
  EXPECT_TRUE(load_roofline(path, "avx512-x-2c")->has_value());
  const auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.status().message();
  const auto best = (*store)->best(best_of(1));
  ASSERT_EQ(best->size(), 1U);
  EXPECT_EQ(best->front().model, "m");
  EXPECT_EQ(best->front().times, std::vector<double>{1e-3});
}

}  // namespace
}  // namespace hone::db
