// target/key_text.h - the parts of device keys, which dashes separate: "32K-1M-96M".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone::target {

// Returns a size in MiB, "96M", or in KiB if it is not a multiple.
[[nodiscard]] std::string size_text(int64_t bytes);
// Parses what size_text() returns. Any other text is 0.
[[nodiscard]] int64_t parse_size(std::string_view text);
// Parses a number of 32 bits with a unit behind it, such as "12c". Any other text is 0.
[[nodiscard]] int parse_count(std::string_view text, std::string_view unit);
// Returns the last part of a key and takes it away.
[[nodiscard]] std::string_view cut_last_part(std::string_view& key);

}  // namespace hone::target
