// Files fail in many ways: each case gives one clear message, and what was stored stays readable.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "hone/db/schema.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void make_database(const std::string& path, int records) {
  auto store = open_store(path);
  ASSERT_TRUE(store.ok()) << store.status().message();
  for (int i = 0; i < records; ++i)
    ASSERT_TRUE((*store)->add(std::vector{sample_record(1, 1e-3)}).ok());
}

std::string open_message(const std::string& path, const StoreOptions& options = {}) {
  const auto store = open_store(path, options);
  return store.ok() ? "opened" : store.status().message();
}

// The exit status of `body` in a process of its own.
template <typename F>
int in_child(const F& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(store_failure, missing_folder) {
  const TestFolder folder;
  EXPECT_EQ(open_message(folder.file("no/a.db")),
            fmt::format("folder {} of database {} does not exist", folder.file("no"),
                        folder.file("no/a.db")));
}

TEST(store_failure, missing_file_that_is_not_to_be_made) {
  const TestFolder folder;
  EXPECT_EQ(open_message(folder.file("a.db"), {.create = false}),
            fmt::format("database {} does not exist or cannot be made", folder.file("a.db")));
  EXPECT_EQ(open_message(folder.file("a.db"), {.read_only = true}),
            fmt::format("database {} does not exist", folder.file("a.db")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.db")));
}

TEST(store_failure, a_folder_in_its_place) {
  const TestFolder folder;
  EXPECT_EQ(open_message(folder.path()),
            fmt::format("database {} is a folder, expected a file", folder.path()));
}

TEST(store_failure, not_a_database_is_left_as_it_is) {
  const TestFolder folder;
  const std::string path = folder.file("a.db"), text(5000, 'x');
  write_file(path, text);
  EXPECT_EQ(open_message(path), fmt::format("{} is not a hone database", path));
  EXPECT_EQ(read_file(path), text);
}

TEST(store_failure, a_database_of_another_program_is_left_as_it_is) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  run_sql(path, "CREATE TABLE bookmarks (url TEXT)");
  const std::string before = read_file(path);
  EXPECT_EQ(open_message(path),
            fmt::format("{} is not a hone database but one of another program", path));
  EXPECT_EQ(read_file(path), before);
}

TEST(store_failure, a_newer_version_is_refused_and_left_as_it_is) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 1);
  run_sql(path, fmt::format("PRAGMA user_version = {}", kSchemaVersion + 1));
  const std::string before = read_file(path);
  EXPECT_EQ(open_message(path),
            fmt::format(
                "database {} has format version {}, this hone knows up to {}; use a newer hone or "
                "another database",
                path, kSchemaVersion + 1, kSchemaVersion));
  EXPECT_EQ(read_file(path), before);
}

TEST(store_failure, corrupt_pages_are_found_on_opening) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 200);
  std::string bytes = read_file(path);
  ASSERT_GT(bytes.size(), 40'000U);
  bytes.replace(12'288, 20'480, std::string(20'480, '\x5a'));
  write_file(path, bytes);
  const std::string message = open_message(path);
  EXPECT_EQ(message.find(fmt::format("database {} is corrupt (", path)), 0U) << message;
  EXPECT_EQ(read_file(path), bytes);
}

TEST(store_failure, a_truncated_file_is_corrupt) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 200);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const std::string message = open_message(path);
  EXPECT_EQ(message.find(fmt::format("database {} is corrupt (", path)), 0U) << message;
}

TEST(store_failure, a_field_that_makes_no_sense_is_corruption) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 1);
  run_sql(path, "UPDATE task SET key = 'zzz'");
  const auto store = open_store(path);
  const auto records = (*store)->query({});
  ASSERT_FALSE(records.ok());
  EXPECT_EQ(
      records.status().message(),
      fmt::format(
          "database {} is corrupt (trial 1 has task key 'zzz'); set it aside and use another database",
          path));
}

TEST(store_failure, locked_by_another_process) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 1);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  auto store = open_store(path, {.busy_timeout_ms = 20});
  ASSERT_TRUE(store.ok());
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto refused = (*store)->add(std::vector{sample_record(1, 1e-3)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.status().message(),
      fmt::format(
          "database {} is locked by another process; wait for it to end or use another database",
          path));
  EXPECT_EQ((*store)->query({})->size(), 1U) << "readers do not wait for writers";
  ASSERT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_TRUE((*store)->add(std::vector{sample_record(1, 1e-3)}).ok())
      << "goes on when the lock is gone";
  sqlite3_close(other);
}

TEST(store_failure, exclusively_locked_on_opening) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 1);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM trial",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  EXPECT_EQ(
      open_message(path, {.busy_timeout_ms = 20}),
      fmt::format(
          "database {} is locked by another process; wait for it to end or use another database",
          path));
  sqlite3_close(other);
}

TEST(store_failure, read_only_file_and_folder) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 3);
  ::chmod(path.c_str(), 0444);
  ::chmod(folder.path().c_str(), 0555);
  // Root may write anywhere: ask as nobody.
  const int status = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 90;
    if (open_message(path) != fmt::format("database {} is read-only", path)) return 1;
    const auto reader = open_store(path, {.read_only = true});
    if (!reader.ok()) return 2;
    const auto records = (*reader)->query({});
    if (!records.ok() || records->size() != 3) return 3;
    const auto refused = (*reader)->add(std::vector{sample_record(1, 1e-3)});
    return !refused.ok() &&
                   refused.status().message() == fmt::format("database {} is read-only", path)
               ? 0
               : 4;
  });
  ::chmod(folder.path().c_str(), 0755);
  EXPECT_EQ(status, 0);
}

TEST(store_failure, a_full_database_keeps_what_it_has) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  const auto store = open_store(path, {.max_bytes = 128 * 1024});
  ASSERT_TRUE(store.ok()) << store.status().message();
  size_t stored = 0;
  Status failure;
  for (int i = 0; i < 10'000 && failure.ok(); ++i) {
    const auto ids = (*store)->add(std::vector{sample_record(1, 1e-3), sample_record(1, 2e-3)});
    if (ids.ok()) stored += ids->size();
    failure = ids.status();
  }
  EXPECT_EQ(
      failure.message(),
      fmt::format("no space left to store in database {}; what was stored before is kept", path));
  EXPECT_GT(stored, 100U);
  EXPECT_EQ((*store)->query({})->size(), stored);
  EXPECT_EQ((*open_store(path))->query({})->size(), stored);
}

TEST(store_failure, a_write_that_the_system_refuses_keeps_what_is_stored) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  const int status = in_child([&] {
    auto store = open_store(path);
    if (!store.ok() || !(*store)->add(std::vector{sample_record(1, 1e-3)}).ok()) return 1;
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {64 * 1024, 64 * 1024};  // bytes a file may have
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int stored = 1; stored < 10'000; ++stored) {
      const auto ids = (*store)->add(std::vector{sample_record(1, 1e-3)});
      if (ids.ok()) continue;
      if (ids.status().message().find("what was stored before is kept") == std::string::npos)
        return 2;
      const auto records = (*store)->query({});
      return records.ok() && static_cast<int>(records->size()) == stored ? 0 : 3;
    }
    return 4;
  });
  EXPECT_EQ(status, 0);
  const auto again = open_store(path);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_GE((*again)->query({})->size(), 1U);
  EXPECT_TRUE((*again)->add(std::vector{sample_record(1, 1e-3)}).ok());
}

TEST(store_failure, a_killed_writer_loses_nothing_that_was_confirmed) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  make_database(path, 1);
  for (int round = 0; round < 3; ++round) {
    const size_t before = (*open_store(path))->query({})->size();
    int pipe_fds[2];
    ASSERT_EQ(pipe(pipe_fds), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      auto store = open_store(path);
      while (store.ok() &&
             (*store)->add(std::vector<trial::Record>(5, sample_record(1, 1e-3))).ok()) {
        if (write(pipe_fds[1], "x", 1) != 1) break;
      }
      _exit(1);
    }
    close(pipe_fds[1]);
    size_t confirmed = 0;
    char byte = 0;
    while (confirmed < 40 && read(pipe_fds[0], &byte, 1) == 1) ++confirmed;
    kill(pid, SIGKILL);
    while (read(pipe_fds[0], &byte, 1) == 1) ++confirmed;
    waitpid(pid, nullptr, 0);
    close(pipe_fds[0]);
    ASSERT_GE(confirmed, 40U);
    const auto store = open_store(path);
    ASSERT_TRUE(store.ok()) << store.status().message();
    const size_t after = (*store)->query({})->size();
    EXPECT_GE(after, before + confirmed * 5);
    EXPECT_LE(after, before + confirmed * 5 + 5);
    EXPECT_EQ((after - before) % 5, 0U) << "a part of a batch was stored";
  }
}

TEST(store_failure, two_writers_at_once_both_succeed) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");  // made by whoever is first
  pid_t pids[2];
  for (pid_t& pid : pids) {
    pid = fork();
    if (pid == 0) {
      auto store = open_store(path);
      if (!store.ok()) _exit(1);
      for (uint64_t i = 0; i < 100; ++i) {
        if (!(*store)->add(std::vector<trial::Record>(3, sample_record(i % 7, 1e-3))).ok())
          _exit(2);
      }
      _exit(0);
    }
  }
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ((*open_store(path))->query({})->size(), 600U);
}

}  // namespace
}  // namespace hone::db
