// The command line. Exit codes: 0 done, 1 internal failure, 2 bad input, 130 interrupted by
// Ctrl-C, 143 by SIGTERM.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <system_error>

#include "hone/base/allocation.h"
#include "hone/base/file.h"
#include "hone/base/printable.h"
#include "hone/database.h"

#include "command.h"
#include "interrupt.h"
#include "memory_bound.h"
#include "output.h"

namespace hone::tool {
namespace {

int fail(Code code, std::string_view message) {
  const std::string line = fmt::format("hone: {}\n", one_line(printable_lines(message)));
  std::fwrite(line.data(), 1, line.size(), stderr);
  return exit_code(code);
}

// Standard output cannot be written. If its reader has gone, as head does, the program ends without
// a message, by SIGPIPE, as other tools do.
int output_failed(int error_number) {
  if (error_number == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return fail(Code::kIo,
              fmt::format("cannot write to standard output: {}", errno_text(error_number)));
}

bool reader_is_gone() {
  struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// What is still in the buffer; 0 or the exit code.
int finish_output() { return std::fflush(stdout) == 0 ? kExitOk : output_failed(errno); }

// If standard output is closed, the first file that is opened would take its place, and get what is
// printed. Writing to it is an error, messages are lost, and there is nothing to read.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    (void)!::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// No input is an output, and none of them is what standard output goes to.
Status check_files(const Command& command) {
  FileRoles files;
  if (command.files) command.files(files);
  files.written("standard output", STDOUT_FILENO);
  return files.check();
}

// Every user of a machine may list its processes with their arguments.
void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string hidden = without_password(argv[i]);
    std::copy(hidden.begin(), hidden.end(), argv[i]);
  }
}

// CLI11 lists the options that one excludes by their addresses, which differ from run to run.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    const size_t at = text.rfind(" Excludes:");
    if (option->get_excludes().size() < 2 || at == std::string::npos) return text;
    std::set<std::string> names;
    for (const CLI::Option* other : option->get_excludes()) names.insert(other->get_name());
    return fmt::format("{} Excludes: {}", text.substr(0, at), fmt::join(names, " "));
  }
};

int run_tool(int argc, char** argv) {
  CLI::App app("Hone compiles a neural network and tunes it for the machine it will run on.",
               "hone");
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 internal failure, 2 bad input, 130 interrupted (143 by SIGTERM).");

  std::vector<Command> commands = {
      tune_command(app),        compile_command(app), run_command(app),    bench_command(app),
      show_command(app),        explain_command(app), verify_command(app), transfer_command(app),
      sensitivity_command(app), report_command(app)};
  CLI::App* db = app.add_subcommand(
      "db",
      "Work with the database of measurements: show, best, stat, import, export, merge, verify, "
      "gc, ship");
  db->require_subcommand(1);
  commands.push_back(db_show_command(*db));
  commands.push_back(db_best_command(*db));
  for (Command& command : db_record_commands(*db)) commands.push_back(std::move(command));
  commands.push_back(db_ship_command(*db));
  CLI::App* dataset = app.add_subcommand(
      "dataset",
      "Work with measured schedules for cost models: make, representatives, split, stat, import, "
      "export");
  dataset->require_subcommand(1);
  for (const auto make :
       {dataset_make_command, dataset_representatives_command, dataset_split_command,
        dataset_stat_command, dataset_import_command, dataset_export_command})
    commands.push_back(make(*dataset));
  CLI::App* policy = app.add_subcommand("policy", "Work with what search strategies learn: train");
  policy->require_subcommand(1);
  commands.push_back(policy_train_command(*policy));
  commands.push_back(adapt_command(app));
  commands.push_back(train_command(app));
  commands.push_back(eval_command(app));
  commands.push_back(serve_command(app));
  commands.push_back(deploy_command(app));
  commands.push_back(ops_command(app));
  commands.push_back(devices_command(app));
  commands.push_back(doctor_command(app));
  commands.push_back(completion_command(app));
  commands.push_back(manual_command(app));
  commands.push_back(version_command(app));

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::ostringstream help;
    app.exit(e, help, help);
    fmt::print("{}", help.str());
    return finish_output();
  } catch (const CLI::RequiredError& e) {
    // A word that is no command is first of all a missing command to the parser.
    const std::vector<std::string> rest = app.remaining(true);
    const bool no_command = app.get_subcommands().empty() ||
                            (db->parsed() && db->get_subcommands().empty()) ||
                            (dataset->parsed() && dataset->get_subcommands().empty()) ||
                            (policy->parsed() && policy->get_subcommands().empty());
    if (no_command && !rest.empty()) {
      return fail(Code::kInvalid,
                  fmt::format("unknown command '{}' (see hone --help)", rest.front()));
    }
    return fail(Code::kInvalid, fmt::format("{} (see hone --help)", e.what()));
  } catch (const CLI::ParseError& e) {
    return fail(Code::kInvalid, e.what());
  }
  if (db->parsed() || dataset->parsed())
    set_interrupt_message("interrupted; what was stored before is kept");
  hide_passwords(argc, argv);
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    Status status = command.max_memory ? bound_memory(*command.max_memory) : ok_status();
    if (status.ok()) status = check_files(command);
    if (status.ok()) status = command.run();
    if (!status.ok()) {
      std::fflush(stdout);  // what was printed comes before the message
      if (std::ferror(stdout) != 0 && reader_is_gone()) return output_failed(EPIPE);
      return fail(status.code(), status.message());
    }
  }
  return finish_output();
}

}  // namespace
}  // namespace hone::tool

int main(int argc, char** argv) {
  hone::tool::occupy_standard_descriptors();
  // A write to a closed pipe or beyond a size limit is an error to report, not a death.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD,
              SIG_DFL);  // whoever started this may ignore it: then no child can be waited for
  (void)hone::tool::listen_for_interrupt();
  hone::tool::bound_memory();
  if (std::FILE* const output = hone::tool::filtered_output(STDOUT_FILENO)) stdout = output;
  try {
    return hone::tool::run_tool(argc, argv);
  } catch (const std::bad_alloc&) {
    return hone::tool::fail(hone::Code::kIo, hone::out_of_memory_message());
  } catch (const std::system_error& e) {
    if (std::ferror(stdout) != 0) return hone::tool::output_failed(e.code().value());
    return hone::tool::fail(hone::Code::kInternal, fmt::format("internal failure: {}", e.what()));
  } catch (const std::exception& e) {  // of a library
    return hone::tool::fail(hone::Code::kInternal, fmt::format("internal failure: {}", e.what()));
  }
}
