// tools/hone/command.h - the subcommands of `hone`, one file each. A command describes its options
// to CLI11 as texts and parses them itself, strictly, when it runs; whatever goes wrong is a
// Status, which main() turns into one line and an exit code.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>

#include "hone/base/file_roles.h"
#include "hone/base/status.h"

namespace hone::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitInternal = 1;       // a bug or a broken machine
inline constexpr int kExitBadInput = 2;       // the user can repair it
inline constexpr int kExitInterrupted = 130;  // as a shell says of SIGINT

struct Command {
  CLI::App* app = nullptr;
  std::function<Status()> run;
  // Which files it reads and writes, as far as the command line says it; an input that is an output
  // is refused before it runs.
  std::function<void(FileRoles&)> files;
  // The text of --max-memory if that option bounds the command's own memory, else null. main()
  // applies it with bound_memory() before the command runs.
  std::shared_ptr<const std::string> max_memory;
};

[[nodiscard]] Command tune_command(CLI::App& root);
[[nodiscard]] Command compile_command(CLI::App& root);
[[nodiscard]] Command run_command(CLI::App& root);
[[nodiscard]] Command bench_command(CLI::App& root);
[[nodiscard]] Command show_command(CLI::App& root);
[[nodiscard]] Command explain_command(CLI::App& root);
[[nodiscard]] Command verify_command(CLI::App& root);
[[nodiscard]] Command transfer_command(CLI::App& root);
[[nodiscard]] Command sensitivity_command(CLI::App& root);
[[nodiscard]] Command report_command(CLI::App& root);
[[nodiscard]] Command db_show_command(CLI::App& db);
[[nodiscard]] Command db_best_command(CLI::App& db);
[[nodiscard]] Command db_ship_command(CLI::App& db);
[[nodiscard]] std::vector<Command> db_record_commands(CLI::App& db);
[[nodiscard]] Command dataset_make_command(CLI::App& dataset);
[[nodiscard]] Command dataset_split_command(CLI::App& dataset);
[[nodiscard]] Command dataset_representatives_command(CLI::App& dataset);
[[nodiscard]] Command dataset_stat_command(CLI::App& dataset);
[[nodiscard]] Command dataset_import_command(CLI::App& dataset);
[[nodiscard]] Command dataset_export_command(CLI::App& dataset);
[[nodiscard]] Command policy_train_command(CLI::App& policy);
[[nodiscard]] Command adapt_command(CLI::App& root);
[[nodiscard]] Command train_command(CLI::App& root);
[[nodiscard]] Command eval_command(CLI::App& root);
[[nodiscard]] Command serve_command(CLI::App& root);
[[nodiscard]] Command deploy_command(CLI::App& root);
[[nodiscard]] Command ops_command(CLI::App& root);
[[nodiscard]] Command devices_command(CLI::App& root);
[[nodiscard]] Command doctor_command(CLI::App& root);
[[nodiscard]] Command completion_command(CLI::App& root);
[[nodiscard]] Command manual_command(CLI::App& root);
[[nodiscard]] Command version_command(CLI::App& root);

[[nodiscard]] int exit_code(Code code);
// The message on one line, without control characters.
[[nodiscard]] std::string one_line(std::string_view message);

}  // namespace hone::tool
