#include "hone/target/key_text.h"

#include <fmt/format.h>

#include <charconv>

namespace hone::target {

std::string size_text(int64_t bytes) {
  if (bytes % (1024 * 1024) == 0) return fmt::format("{}M", bytes / (1024 * 1024));
  return fmt::format("{}K", bytes / 1024);
}

int64_t parse_size(std::string_view text) {
  if (const int64_t kibibytes = parse_count(text, "K"); kibibytes > 0) return kibibytes << 10;
  return int64_t{parse_count(text, "M")} << 20;
}

int parse_count(std::string_view text, std::string_view unit) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = status == std::errc() && std::string_view(end, text.end()) == unit;
  return whole && number > 0 ? number : 0;
}

std::string_view cut_last_part(std::string_view& key) {
  const size_t dash = key.rfind('-');
  const std::string_view part = dash == key.npos ? std::string_view() : key.substr(dash + 1);
  key = key.substr(0, dash == key.npos ? 0 : dash);
  return part;
}

}  // namespace hone::target
