// tools/hone/command_tree.h - the commands with their options as texts, as --help shows them: what
// the manual pages and the completion of shells are made from. Hidden commands are left out.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

namespace hone::tool {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its name without dashes
  std::string value;               // such as "FILE"; empty for a flag
  std::string initial;             // the default, as --help shows it; may be empty
  bool required = false;
  std::string text;
  std::vector<std::string> words = {};  // values to offer; empty if they are not known
};

struct CommandText {
  std::string path;  // such as "db show"; empty for the program itself
  std::string text, footer;
  std::vector<OptionText> positionals, options;
  std::vector<CommandText> commands;  // below it
};

[[nodiscard]] CommandText command_text(const CLI::App& app);
// Calls `visit` for the command and all below it, in the order of --help.
void for_each_command(const CommandText& command,
                      const std::function<void(const CommandText&)>& visit);
// Returns the beginning of a text, without examples and explanations.
[[nodiscard]] std::string brief(const std::string& text);

}  // namespace hone::tool
