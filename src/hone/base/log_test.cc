#include "hone/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace hone {
namespace {

// Collects the lines; puts the level and stderr back at the end.
class Lines {
 public:
  Lines() : before_(log_level()) {
    set_log_sink([this](LogLevel, std::string_view line) { lines.emplace_back(line); });
  }
  ~Lines() {
    set_log_sink({});
    set_log_level(before_);
  }
  std::vector<std::string> lines;

 private:
  LogLevel before_;
};

TEST(log, level_decides_what_is_written) {
  Lines out;
  set_log_level(LogLevel::kWarning);
  log_info("not {}", "seen");
  log_warning("seen {}", 1);
  log_at(LogLevel::kError, "seen {}", 2);
  set_log_level(LogLevel::kSilent);
  log_at(LogLevel::kError, "not seen");
  set_log_level(LogLevel::kDebug);
  log_at(LogLevel::kDebug, "seen {}", 3);
  EXPECT_EQ(out.lines, (std::vector<std::string>{"seen 1", "seen 2", "seen 3"}));
}

TEST(log, level_names) {
  EXPECT_EQ(parse_log_level("silent"), LogLevel::kSilent);
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("Debug"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

TEST(log, lines_go_to_stderr_with_their_level) {
  testing::internal::CaptureStderr();
  log_line(LogLevel::kError, "it broke");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hone: error: it broke\n");
}

TEST(log, many_threads_write_whole_lines) {
  Lines out;
  set_log_level(LogLevel::kInfo);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) log_info("0123456789");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(out.lines, std::vector<std::string>(400, "0123456789"));
}

}  // namespace
}  // namespace hone
