// Files that call themselves databases of Hone and were made by somebody else: one message, nothing
// in them runs, and nothing is changed. A file that goes away while it is in use is noticed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "hone/db/schema.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

void make_database(const std::string& path, int records = 2) {
  auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.status().message();
  for (int i = 0; i < records; ++i)
    ASSERT_TRUE((*store)->add(std::vector{sample_record(1, 1e-3)}).ok());
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string open_message(const std::string& path, const StoreOptions& options = {}) {
  const auto store = open_store(path, options);
  return store.ok() ? "opened" : store.status().message();
}

// A sound database after these statements is refused, for reading and for writing, and not changed.
void expect_refused(const std::string& sql, const std::string& expected) {
  SCOPED_TRACE(sql);
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path);
  run_sql(path, sql);
  const std::string before = bytes_of(path);
  for (const bool read_only : {true, false}) {
    EXPECT_EQ(open_message(path, {.read_only = read_only}),
              fmt::format("database {} {}", path, expected));
  }
  EXPECT_TRUE(bytes_of(path) == before);
}

constexpr const char* kAdvice = "; set it aside and use another database";

TEST(hostile_file, definitions_that_are_not_ours_are_refused) {
  const auto none_of_ours = [](const char* what) {
    return fmt::format("has a {}, which is none of hone's{}", what, kAdvice);
  };
  expect_refused("CREATE TRIGGER t AFTER INSERT ON trial BEGIN DELETE FROM trial; END",
                 none_of_ours("trigger 't'"));
  expect_refused("CREATE VIEW v AS SELECT * FROM trial", none_of_ours("view 'v'"));
  expect_refused("CREATE TABLE more (x)", none_of_ours("table 'more'"));
  expect_refused("CREATE INDEX slow ON task (hex(zeroblob(length(key))))",
                 none_of_ours("index 'slow'"));
}

TEST(hostile_file, tables_that_are_others_are_refused) {
  const auto other = [](const char* table) {
    return fmt::format("defines the table '{}' in another way than hone does{}", table, kAdvice);
  };
  expect_refused("ALTER TABLE trial ADD COLUMN extra TEXT", other("trial"));
  expect_refused("ALTER TABLE trial ADD COLUMN twice REAL AS (2 * centre)", other("trial"));
  expect_refused("PRAGMA foreign_keys = OFF; DROP TABLE device; CREATE TABLE device (id, key)",
                 other("device"));
  expect_refused(
      "PRAGMA foreign_keys = OFF; ALTER TABLE task RENAME TO hidden; CREATE VIEW task AS SELECT id, "
      "key, kernel_class, hex(zeroblob(1000000000)) AS text FROM hidden",
      fmt::format("has a table 'hidden', which is none of hone's{}", kAdvice));
  expect_refused("DROP TABLE choice", fmt::format("lacks the index 'choice_best'{}", kAdvice));
  expect_refused("DROP INDEX trial_best", fmt::format("lacks the index 'trial_best'{}", kAdvice));
}

TEST(hostile_file, a_view_in_the_place_of_a_table_is_refused) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  run_sql(path,
          fmt::format("CREATE VIEW task AS SELECT 1 AS id; PRAGMA application_id = {}; PRAGMA "
                      "user_version = {}",
                      kApplicationId, kSchemaVersion));
  EXPECT_EQ(open_message(path),
            fmt::format("database {} has a view 'task', which is none of hone's{}", path, kAdvice));
}

TEST(hostile_file, a_format_version_that_there_is_not_is_refused) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  run_sql(path,
          fmt::format("PRAGMA application_id = {}; PRAGMA user_version = -5", kApplicationId));
  for (const bool read_only : {true, false}) {
    EXPECT_EQ(open_message(path, {.read_only = read_only}),
              fmt::format("database {} is corrupt (format version -5){}", path, kAdvice));
  }
}

TEST(hostile_file, what_analyze_leaves_is_no_harm) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path);
  run_sql(path, "ANALYZE");
  EXPECT_EQ(open_message(path), "opened");
}

TEST(hostile_file, pipes_and_devices_are_refused) {
  const TestFolder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder.file("pipe"), std::string("/dev/zero")}) {
    for (const bool read_only : {true, false}) {
      EXPECT_EQ(open_message(path, {.read_only = read_only}),
                fmt::format("database {}: it is a device or a pipe, expected a file", path));
    }
  }
}

TEST(hostile_file, names_that_mean_something_to_sqlite_are_plain_names) {
  const TestFolder folder;
  for (const char* name : {"a?mode=memory", "a%41b", "a#b", "/a.db"}) {
    const std::string path = folder.path() + "/" + name;
    make_database(path);
    EXPECT_TRUE(std::filesystem::exists(path)) << name;
    EXPECT_EQ((*open_store(path, {.read_only = true}))->query({})->size(), 2U) << name;
  }
}

TEST(hostile_file, a_text_beyond_all_measure_is_refused) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path);
  run_sql(path, "UPDATE trial SET message = printf('%.*c', 17000000, 'x') WHERE id = 2");
  const auto store = open_store(path, {.read_only = true});
  ASSERT_TRUE(store.ok()) << store.status().message();
  const auto records = (*store)->query({});
  ASSERT_FALSE(records.ok());
  EXPECT_EQ(records.status().message(),
            fmt::format("database {} has or gets a text of more than 16 MiB", path));
}

// Numbers that would be reckoned with.
TEST(hostile_file, a_record_without_sound_numbers_is_not_read) {
  const std::pair<const char*, const char*> kCases[] = {
      {"centre = 9e999", "a successful record has the centre inf, expected a positive time"},
      {"centre = -1", "a successful record has the centre -1, expected a positive time"},
      {"centre = 0", "a successful record has the centre 0, expected a positive time"},
      {"times = x'000000000000f07f'", "a record has the time inf, expected a positive one"},
      {"times = x'000000000000f8ff'", "a record has the time -nan, expected a positive one"},
      {"duel = x'00000000000000000000000000000000'",
       "a record's duel has the time 0, expected a positive one"},
      {"drift = 9e999", "a record has the drift inf, expected a positive number"},
      {"threads = 1000000", "a record has 65537 threads, expected at most 65536"},
      {"threads = 4294967297", "a record has 65537 threads, expected at most 65536"},
      {"host_load = 9e999", "a record has a number that is not finite"},
      {"low = -9e999", "a record has a number that is not finite"}};
  for (const auto& [change, expected] : kCases) {
    SCOPED_TRACE(change);
    const TestFolder folder;
    const std::string path = folder.file("a.db");
    make_database(path);
    run_sql(path, fmt::format("UPDATE trial SET {} WHERE id = 1", change));
    const auto store = open_store(path);
    ASSERT_TRUE(store.ok()) << store.status().message();
    const std::string message =
        fmt::format("database {} is corrupt (trial 1: {}){}", path, expected, kAdvice);
    EXPECT_EQ((*store)->query({}).status().message(), message);
    ASSERT_TRUE((*store)->verify().ok());
    const auto all = (*store)->query({});
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ(check((*all)[0]).message(), expected);
    EXPECT_TRUE(check((*all)[1]).ok());
  }
}

TEST(hostile_file, choices_between_kernels_are_found) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path);
  {
    const auto store = open_store(path);
    ASSERT_TRUE((*store)->add(std::vector{sample_record(2, 1e-3)}).ok());
  }
  run_sql(path, "INSERT INTO choice VALUES ('00000000000000aa', 1, 2), ('00000000000000bb', 1, 3)");
  const auto store = open_store(path, {.read_only = true});
  EXPECT_EQ(
      *(*store)->verify(),
      std::vector<std::string>{"the network 00000000000000bb has trial 3 in the place of trial "
                               "1, which is of another kernel"});
}

// All ways in which a file goes, between two batches: the second is refused, and where another
// database has its place, that one stays as it is.
TEST(hostile_file, one_that_is_taken_away_is_noticed) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  const auto message = [&](const char* how) {
    return fmt::format(
        "database {} was {} by another program while it was in use; what is measured from then on is "
        "not kept",
        path, how);
  };
  const auto add = [](Store& store) {
    return store.add(std::vector{sample_record(1, 1e-3)}).status().message();
  };
  {
    const auto store = open_store(path);
    ASSERT_EQ(add(**store), "");
    std::filesystem::remove(path);
    EXPECT_EQ(add(**store), message("removed"));
    EXPECT_EQ((*store)->set_verified(1, trial::Outcome::kOk, "").message(), message("removed"));
    EXPECT_EQ((*store)->choose(7, {}).message(), message("removed"));
  }
  std::filesystem::remove(path + "-wal");
  std::filesystem::remove(path + "-shm");
  make_database(path, 3);
  {
    const auto store = open_store(path);
    ASSERT_EQ(add(**store), "");
    std::filesystem::rename(path, folder.file("moved.db"));
    EXPECT_EQ(add(**store), message("removed"));
    std::filesystem::rename(folder.file("moved.db"), path);
    EXPECT_EQ(add(**store), "") << "it is back";
    make_database(folder.file("new.db"), 1);
    std::filesystem::rename(folder.file("new.db"), path);
    EXPECT_EQ(add(**store), message("replaced"));
  }
}

}  // namespace
}  // namespace hone::db
