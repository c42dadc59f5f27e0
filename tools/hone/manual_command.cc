// `hone manual FOLDER`, which --help does not show: writes the manual pages and the scripts of
// shells as they lie below share/ of an installation. The build calls it.
#include <filesystem>

#include "hone/base/file.h"

#include "command.h"
#include "completion.h"
#include "manual_page.h"

namespace hone::tool {
namespace {

namespace fs = std::filesystem;

Status write(const fs::path& path, const std::string& text) {
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  if (failure) {
    return error(Code::kIo, "cannot make the folder {}: {}", path.parent_path().string(),
                 failure.message());
  }
  return write_file_atomic(path.string(), text);
}

// Where each shell looks for the script of a program.
constexpr std::pair<std::string_view, std::string_view> kScripts[] = {
    {"bash", "bash-completion/completions/hone"},
    {"zsh", "zsh/site-functions/_hone"},
    {"fish", "fish/vendor_completions.d/hone.fish"}};

Status write_all(const fs::path& folder, const CommandText& root) {
  for (const auto& [shell, place] : kScripts) {
    HONE_ASSIGN_OR_RETURN(const std::string script, completion_script(shell, root));
    HONE_RETURN_IF_ERROR(write(folder / place, script));
  }
  Status status = ok_status();
  for_each_command(root, [&](const CommandText& command) {
    if (status.ok())
      status = write(folder / "man" / "man1" / (manual_name(command) + ".1"), manual_page(command));
  });
  return status;
}

}  // namespace

Command manual_command(CLI::App& root) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("manual", "Write the manual pages and completion scripts");
  app->group("");  // hidden
  app->add_option("folder", *folder, "The folder share of an installation")
      ->required()
      ->type_name("FOLDER");
  return {app, [folder, &root] { return write_all(*folder, command_text(root)); }};
}

}  // namespace hone::tool
