#include "command_tree.h"

#include <algorithm>

#include "hone/cost_models.h"
#include "hone/device.h"
#include "hone/tune.h"

namespace hone::tool {
namespace {

// What may stand behind an option, where the interface lists it.
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string name = option.get_name();
  if (name == "--device") return device_names();
  if (name == "--search") return strategy_names();
  if (name == "--cost" || name == "--guide") return cost_model_names();
  if (name == "--accuracy") return {"strict", "default", "fast"};
  return {};
}

OptionText option_text(const CLI::Option& option) {
  OptionText text = {.names = {},
                     .value = {},
                     .initial = option.get_default_str(),
                     .required = option.get_required(),
                     .text = option.get_description()};
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (text.names.empty()) text.names.push_back(option.get_name(true));
  const bool is_flag = option.get_items_expected_max() == 0;
  if (!is_flag) {
    text.value = option.get_type_name();
    text.words = words_of(option);
  }
  return text;
}

CommandText text_below(const CLI::App& app, const std::string& path) {
  CommandText command = {.path = path,
                         .text = app.get_description(),
                         .footer = app.get_footer(),
                         .positionals = {},
                         .options = {},
                         .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? command.positionals : command.options)
        .push_back(option_text(*option));
  }
  const auto is_shown = [](const CLI::App* below) { return !below->get_group().empty(); };
  for (const CLI::App* below : app.get_subcommands(is_shown)) {
    command.commands.push_back(
        text_below(*below, path.empty() ? below->get_name() : path + " " + below->get_name()));
  }
  return command;
}

}  // namespace

CommandText command_text(const CLI::App& app) { return text_below(app, ""); }

void for_each_command(const CommandText& command,
                      const std::function<void(const CommandText&)>& visit) {
  visit(command);
  for (const CommandText& below : command.commands) for_each_command(below, visit);
}

std::string brief(const std::string& text) {
  size_t end = text.size();
  for (const char* mark : {"\n", ": ", "; ", ". ", " ("}) end = std::min(end, text.find(mark));
  return text.substr(0, end);
}

}  // namespace hone::tool
