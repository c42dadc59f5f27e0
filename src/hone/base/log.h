// base/log.h - writes lines for people to stderr: log_warning("kernel {} is slow", name). Lines
// above the current level are dropped; the level is kWarning unless HONE_LOG or set_log_level
// changes it. A line is written whole, also when many threads log.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace hone {

enum class LogLevel { kSilent, kError, kWarning, kInfo, kDebug };

[[nodiscard]] std::optional<LogLevel> parse_log_level(
    std::string_view name);  // "silent", "error", ... "debug"
[[nodiscard]] LogLevel log_level();
void set_log_level(LogLevel level);

// The sink receives every line that the level lets through, instead of stderr. An empty function
// restores stderr.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);

void log_line(LogLevel level, std::string_view line);  // writes the line at any level

template <typename... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, format, std::forward<Args>(args)...);
}

}  // namespace hone
