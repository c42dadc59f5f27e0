// ir/lexer.h - the words and signs of a program's text, with their places.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::ir {

struct Token {
  enum Kind : uint8_t { kWord, kInteger, kReal, kString, kSign, kEnd } kind;
  std::string_view text;  // as written; a string without its quotes
  int line, column;       // from 1
};

[[nodiscard]] constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Comments run from '#' to the end of the line. The text must outlive the tokens. The last token
// is kEnd.
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text);

}  // namespace hone::ir
