// tools/hone/manual_page.h - a manual page of a command, in the macros of man(7).
#pragma once

#include <string>

#include "command_tree.h"

namespace hone::tool {

// Returns the name of the page without its section, such as "hone-db-show".
[[nodiscard]] std::string manual_name(const CommandText& command);
[[nodiscard]] std::string manual_page(const CommandText& command);

}  // namespace hone::tool
