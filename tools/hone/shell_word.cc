#include "shell_word.h"

namespace hone::tool {

std::string quoted(const std::string& text, std::string_view apostrophe) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += apostrophe;
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace hone::tool
