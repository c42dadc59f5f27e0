// tools/hone/shell_word.h - a text as one word of a line that a shell reads.
#pragma once

#include <string>
#include <string_view>

namespace hone::tool {

// Returns the text in apostrophes. Those inside it become `apostrophe`, as sh, bash and zsh read
// it; fish has another one.
[[nodiscard]] std::string quoted(const std::string& text, std::string_view apostrophe = R"('\'')");

}  // namespace hone::tool
