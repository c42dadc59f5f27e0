// ir/lexer.h - splits a program's text into words and signs with their places.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::ir {

struct Token {
  enum Kind : uint8_t { kWord, kInteger, kReal, kString, kSign, kEnd } kind;
  std::string_view text;  // text as written; a string without its quotes
  int line, column;       // both count from 1
};

[[nodiscard]] constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Splits the text. Comments run from '#' to the end of the line. The text must outlive the tokens,
// the last of which is kEnd.
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text);

}  // namespace hone::ir
