// base/options.h - strict parsing of what users type. Nothing is guessed: blanks, signs, unknown
// keys, missing units and trailing characters are errors, and each error says what was found and
// what was expected.
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

// "name=text", split at the first '='; neither side may be empty.
[[nodiscard]] Result<std::pair<std::string, std::string>> parse_key_value(std::string_view text);

// "depth=6,rate=0.3": each key once and among `known`; the empty text is no option at all.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_key_values(
    std::string_view text, std::span<const std::string_view> known);

// "500ms", "60s", "1.5m", "1h" in seconds; more than 0.
[[nodiscard]] Result<double> parse_duration(std::string_view text);

// "800K", "64M", "1.5G" or a plain number, in bytes; K is 1024, M and G its powers. At least 1.
[[nodiscard]] Result<int64_t> parse_bytes(std::string_view text);

// A decimal integer in [low, high].
[[nodiscard]] Result<int64_t> parse_int(std::string_view text, int64_t low, int64_t high);

// A decimal number in [low, high], "1e-3" or "0.5".
[[nodiscard]] Result<double> parse_real(std::string_view text, double low, double high);

// A key as hash_hex() prints it: 16 lower-case hexadecimal digits.
[[nodiscard]] Result<uint64_t> parse_key(std::string_view text);

// "1x3x224x224" or "1,3,224,224": one kind of separator, lengths from 1, at most 2^40 elements in
// all.
[[nodiscard]] Result<std::vector<int64_t>> parse_shape(std::string_view text);

}  // namespace hone
