// tools/hone/completion.h - scripts by which shells complete commands, options and known values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

#include "command_tree.h"

namespace hone::tool {

[[nodiscard]] std::vector<std::string> shell_names();
// It is an error if the shell is not known.
[[nodiscard]] Result<std::string> completion_script(std::string_view shell,
                                                    const CommandText& root);

}  // namespace hone::tool
