
#include "hone/version.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"

namespace hone::tool {

Command version_command(CLI::App& root) {
  struct Options {
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* app =
      root.add_subcommand("version", "Print the version of Hone and of its artifacts' C interface");
  add_json(*app, options->json);
  return {app, [options] {
            if (options->json) {
              const Json json = {{"version", version()}, {"abi_version", abi_version()}};
              fmt::print("{}", json_text(json));
            } else {
              fmt::print("hone {} (artifact interface {})\n", version(), abi_version());
            }
            return ok_status();
          }};
}

}  // namespace hone::tool
