#include "hone/base/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hone {
namespace {

constexpr int64_t kMaxElements = int64_t{1}
                                 << 40;  // 4 TiB of float32: no typing error goes further

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Whole text or nothing.
template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::pair<std::string, std::string>> parse_key_value(std::string_view text) {
  const size_t at = text.find('=');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) {
    return invalid("found '{}', expected NAME=VALUE", text);
  }
  return std::pair(std::string(text.substr(0, at)), std::string(text.substr(at + 1)));
}

Result<std::map<std::string, std::string>> parse_key_values(
    std::string_view text, std::span<const std::string_view> known) {
  std::map<std::string, std::string> values;
  if (text.empty()) return values;
  for (const std::string_view part : split(text, ',')) {
    HONE_ASSIGN_OR_RETURN(auto pair, parse_key_value(part));
    if (std::find(known.begin(), known.end(), pair.first) == known.end()) {
      return invalid("unknown option '{}', expected one of: {}", pair.first,
                     fmt::join(known, ", "));
    }
    if (values.count(pair.first) != 0) return invalid("option '{}' is given twice", pair.first);
    values.insert(std::move(pair));
  }
  return values;
}

Result<double> parse_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = text.substr(digits);
  double number = 0;
  for (const auto& [name, seconds] : kUnits) {
    if (name != unit || !parse_whole(text.substr(0, digits), number)) continue;
    const double duration = number * seconds;
    if (duration > 0 && std::isfinite(duration)) return duration;
  }
  return invalid("'{}' is not a duration, expected more than 0 and a unit: 500ms, 60s, 5m or 1h",
                 text);
}

Result<int64_t> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  for (const auto& [name, size] : kUnits) {
    if (name != text.substr(digits) || !parse_whole(text.substr(0, digits), number)) continue;
    const double bytes = number * size;
    if (bytes >= 1 && bytes < 1e18) return static_cast<int64_t>(bytes);
  }
  return invalid("'{}' is no number of bytes, expected one such as 800K, 64M or 1.5G", text);
}

Result<int64_t> parse_int(std::string_view text, int64_t low, int64_t high) {
  int64_t value = 0;
  if (!parse_whole(text, value) || value < low || value > high) {
    return invalid("found '{}', expected an integer from {} to {}", text, low, high);
  }
  return value;
}

Result<double> parse_real(std::string_view text, double low, double high) {
  double value = 0;
  if (!parse_whole(text, value) || !(value >= low && value <= high)) {
    return invalid("found '{}', expected a number from {} to {}", text, low, high);
  }
  return value;
}

Result<std::vector<int64_t>> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const std::string_view part :
       split(text, text.find('x') != std::string_view::npos ? 'x' : ',')) {
    Result<int64_t> length = parse_int(part, 1, kMaxElements / elements);
    if (!length.ok()) {
      return invalid(
          "'{}' is not a shape, expected lengths from 1 such as 1x3x224x224 (at most 2^40 elements)",
          text);
    }
    elements *= *length;
    shape.push_back(*length);
  }
  return shape;
}

Result<uint64_t> parse_key(std::string_view text) {
  const bool hex = text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  uint64_t key = 0;
  if (!hex || text.size() != 16 ||
      std::from_chars(text.data(), text.data() + text.size(), key, 16).ec != std::errc())
    return invalid("found '{}', expected a key of 16 hexadecimal digits", text);
  return key;
}

}  // namespace hone
