// base/options.h - strict parsers of what users type. Blanks, signs, unknown keys, missing units
// and trailing characters are errors, and each error says what was found and what was expected.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/base/status.h"

namespace hone {

// Parses "name=text", which is split at the first '='. Neither side may be empty.
[[nodiscard]] Result<std::pair<std::string, std::string>> parse_key_value(std::string_view text);

// Parses "depth=6,rate=0.3". Each key must be among `known` and may occur once. The empty text has
// no options.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_key_values(
    std::string_view text, std::span<const std::string_view> known);

// Parses "500ms", "60s", "1.5m" or "1h" and returns seconds, which must be more than 0.
[[nodiscard]] Result<double> parse_duration(std::string_view text);

// Parses "800K", "64M", "1.5G" or a plain number and returns bytes, which must be at least 1. K is
// 1024, M is 1024^2 and G is 1024^3.
[[nodiscard]] Result<int64_t> parse_bytes(std::string_view text);

// Parses a decimal integer in [low, high].
[[nodiscard]] Result<int64_t> parse_int(std::string_view text, int64_t low, int64_t high);

// Parses a decimal number in [low, high], such as "1e-3" or "0.5".
[[nodiscard]] Result<double> parse_real(std::string_view text, double low, double high);

// Parses a key as hash_hex() prints it: 16 lower-case hexadecimal digits.
[[nodiscard]] Result<uint64_t> parse_key(std::string_view text);

// Parses "1x3x224x224" or "1,3,224,224". Separators must be of one kind, lengths at least 1, and
// there may be at most 2^40 elements in all.
[[nodiscard]] Result<std::vector<int64_t>> parse_shape(std::string_view text);

// Returns what a parser made of an option's text. An error then begins with the option's name.
template <typename T>
[[nodiscard]] Result<T> of_option(std::string_view option, Result<T> value) {
  if (!value.ok()) return invalid("{}: {}", option, value.status().message());
  return value;
}

}  // namespace hone
