// base/log.h - lines for people on stderr: log_warning("kernel {} is slow", name). Off above the
// level, which is kWarning unless HONE_LOG or set_log_level says otherwise. A line is written
// whole, also from many threads.
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

// Receives every line that the level lets through, instead of stderr; an empty function restores
// stderr.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);

void log_line(LogLevel level, std::string_view line);  // unconditionally

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
