#include "hone/base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "hone/base/printable.h"

namespace hone {
namespace {

constexpr std::string_view kNames[] = {"silent", "error", "warning", "info", "debug"};

std::string_view name_of(LogLevel level) { return kNames[static_cast<int>(level)]; }

LogLevel level_from_environment() {
  const char* text = std::getenv("HONE_LOG");
  if (text == nullptr || *text == '\0') return LogLevel::kWarning;
  if (const auto level = parse_log_level(text)) return *level;
  const std::string line = fmt::format(
      "hone: warning: HONE_LOG is '{}', expected silent, error, warning, info or debug\n",
      printable(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
  return LogLevel::kWarning;
}

std::atomic<LogLevel>& current_level() {
  static std::atomic<LogLevel> level = level_from_environment();
  return level;
}

struct Sink {
  std::mutex mutex;
  LogSink function;
};

Sink& current_sink() {
  static Sink sink;
  return sink;
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (const LogLevel level : {LogLevel::kSilent, LogLevel::kError, LogLevel::kWarning,
                               LogLevel::kInfo, LogLevel::kDebug}) {
    if (name_of(level) == name) return level;
  }
  return std::nullopt;
}

LogLevel log_level() { return current_level().load(std::memory_order_relaxed); }
void set_log_level(LogLevel level) { current_level().store(level, std::memory_order_relaxed); }

void set_log_sink(LogSink sink) {
  Sink& current = current_sink();
  const std::lock_guard<std::mutex> lock(current.mutex);
  current.function = std::move(sink);
}

void log_line(LogLevel level, std::string_view line) {
  Sink& current = current_sink();
  const std::lock_guard<std::mutex> lock(current.mutex);
  if (current.function) {
    current.function(level, line);
    return;
  }
  const std::string text = fmt::format("hone: {}: {}\n", name_of(level), printable(line));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace hone
