// db/store_test_support.h - a folder for the files of one test, a record to store in them, and SQL
// that changes them behind the store's back.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "hone/db/registry.h"

namespace hone::db {

class TestFolder {
 public:
  TestFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            fmt::format("hone_{}_{}_{}", info->test_suite_name(), info->name(), getpid());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
}

inline trial::Record sample_record(uint64_t task, double seconds, bool verified = true) {
  trial::Record r;
  r.task = task;
  r.kernel_class = "conv2d+bias+relu";
  r.task_text = "task text";
  r.device = "avx512-x-2c";
  r.version = "1";
  r.algorithm = "direct";
  r.steps = "split i 8\nvectorize j";
  r.decisions = "tile 8 4";
  r.times = {seconds, seconds * 1.01, seconds * 1.02};
  r.centre = seconds * 1.01;
  r.low = seconds;
  r.high = seconds * 1.02;
  r.threads = 2;
  r.seed = 0xfedcba9876543210ULL;
  r.verified = verified;
  r.unix_time = 1'700'000'000;
  r.host_load = 0.25;
  r.others = 0.125;
  r.steal = 0.0625;
  r.drift = 1.25;
  r.crowned = verified;
  r.duel = {seconds, seconds * 1.5, seconds * 1.1, seconds * 1.6};
  r.model = "resnet18";
  r.bounds = {{0.375, 0.25}, "amd_zen4"};
  return r;
}

// A record of a part of its task.
inline trial::Record sample_part(uint64_t task, double seconds) {
  trial::Record r = sample_record(task, seconds, false);
  r.part = "2[0]<64";
  return r;
}

// Figures that are all different.
inline CodeFigures sample_code() {
  CodeFigures code;
  int64_t next = 96;
  for_each_figure(code, [&](const char*, int64_t& figure) { figure = next++; });
  return code;
}

// Sets steps of "direct" or "winograd_4", or of one of them with constants in 16 bits.
inline void use_algorithm(trial::Record& r, const std::string& algorithm) {
  r.algorithm = algorithm;
  if (algorithm.starts_with("winograd")) r.steps = "winograd(conv2d, 4)\n" + r.steps;
  if (algorithm.ends_with("_bf16")) r.steps += "\nnarrow(weight.cache, bf16)";
  r.accuracy = trial::accuracy_of(r.steps);
}

// Returns a record with numbers and texts that are easily corrupted.
inline trial::Record odd_record() {
  trial::Record r = sample_record(0xffffffffffffffffULL, 1.0 / 3e5);
  r.message = "tab\t, \"quotes\" and\nlines";
  r.times = {1e-300, 0.1 + 0.2, 1.7976931348623157e308};
  r.outcome = trial::Outcome::kWrongAnswer;
  r.verified = r.crowned = false;
  r.bounds.reset();
  r.unix_time = 1'800'000'000'000;
  return r;
}

inline BestQuery best_of(uint64_t task, int limit = 1) {
  return {.task = task, .device = "avx512-x-2c", .threads = 2, .limit = limit};
}

}  // namespace hone::db
