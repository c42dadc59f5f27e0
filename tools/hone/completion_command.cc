#include "command.h"
#include "completion.h"
#include "option_texts.h"

namespace hone::tool {

Command completion_command(CLI::App& root) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand(
      "completion", "Print the script by which a shell completes commands and options of hone");
  app->add_option("shell", *shell,
                  fmt::format("The shell: {}. The script's first lines say where it belongs",
                              join_names(shell_names())))
      ->required()
      ->type_name("SHELL");
  return {app, [shell, &root] {
            HONE_ASSIGN_OR_RETURN(const std::string script,
                                  completion_script(*shell, command_text(root)));
            fmt::print("{}", script);
            return ok_status();
          }};
}

}  // namespace hone::tool
