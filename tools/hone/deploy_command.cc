// hone deploy: copies hone-serve to a board, starts it, and writes the board's file for --machine.
#include <arpa/inet.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/installation.h"
#include "hone/base/options.h"
#include "hone/device.h"

#include "command.h"
#include "remote_shell.h"
#include "serve_options.h"

namespace hone::tool {
namespace {

struct Deploy {
  std::string board;               // USER@HOST
  std::string port = "5000";       // of hone-serve
  std::string ssh_port, identity;  // of ssh; empty: as ssh is configured
  std::string token_file;          // the copy here; empty: beside `output`
  std::string output = "board.toml";
};

bool is_ipv6(const std::string& host) {
  in6_addr address = {};
  return ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) == 1;
}

// Returns the board as ssh takes it, which knows no brackets around an address of IPv6.
Result<std::string> name_for_ssh(const std::string& board) {
  const size_t at = board.rfind('@') + 1;
  std::string user = board.substr(0, at), host = board.substr(at);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto is_of = [](const std::string& text, std::string_view others) {
    return std::all_of(text.begin(), text.end(), [others](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             others.find(c) != std::string_view::npos;
    });
  };
  const bool is_name = !host.empty() && board.front() != '-' && host.front() != '-' &&
                       is_of(user, ".-_@") && (is_of(host, ".-_") || is_ipv6(host)) &&
                       is_of(host, ".-_:%");
  if (!is_name)
    return invalid("BOARD: found '{}', expected USER@HOST or HOST (--ssh-port: another port)",
                   board);
  return user + host;
}

Result<RemoteShell> shell_of(const Deploy& deploy) {
  HONE_ASSIGN_OR_RETURN(std::string name, name_for_ssh(deploy.board));
  RemoteShell shell{std::move(name), {}};
  if (!deploy.ssh_port.empty()) {
    HONE_RETURN_IF_ERROR(of_option("--ssh-port", parse_int(deploy.ssh_port, 1, 65535)).status());
    shell.options.insert(shell.options.end(), {"-p", deploy.ssh_port});
  }
  if (!deploy.identity.empty()) {
    if (!file_exists(deploy.identity))
      return error(Code::kNotFound, "--identity: there is no file {}", deploy.identity);
    shell.options.insert(shell.options.end(), {"-i", deploy.identity});
  }
  return shell;
}

// The program for the processor that the board says it has.
Result<std::string> find_program(const RemoteShell& shell) {
  HONE_ASSIGN_OR_RETURN(std::string machine, run_there(shell, "uname -m"));
  if (machine == "arm64") machine = "aarch64";
  if (machine != "aarch64" && machine != "x86_64")
    return error(Code::kUnsupported, "{} is {}, expected aarch64 or x86_64", shell.host, machine);
  const std::vector<std::string> places =
      installed_places(fmt::format("share/hone/boards/{}/hone-serve", machine));
  const auto found = std::find_if(places.begin(), places.end(), file_exists);
  if (found != places.end()) return *found;
  return error(Code::kNotFound,
               "{} is {}, for which this installation has no hone-serve (target hone_board_{}, "
               "after scripts/setup.sh --with-board); there is none at {}",
               shell.host, machine, machine, fmt::join(places, ", "));
}

// Copies its input, a program of so many bytes, all of which have to arrive. A running one is
// replaced: its file is moved away, and it is told to end.
std::string copy_line(std::uintmax_t bytes) {
  return fmt::format(
      "set -e; umask 077; d=$HOME/.local/share/hone; mkdir -p \"$d\"; "
      "cat >\"$d/hone-serve.new\"; n=$(wc -c <\"$d/hone-serve.new\"); "
      "if [ $n -ne {0} ]; then "
      "echo \"$n bytes of hone-serve have arrived, expected {0}\" >&2; exit 1; fi; "
      "chmod 700 \"$d/hone-serve.new\"; mv -f \"$d/hone-serve.new\" \"$d/hone-serve\"",
      bytes);
}

Status copy_program(const RemoteShell& shell, const std::string& program) {
  std::error_code problem;
  const std::uintmax_t bytes = std::filesystem::file_size(program, problem);
  if (problem) return error(Code::kIo, "cannot read {}: {}", program, errno_text(problem.value()));
  return run_there(shell, copy_line(bytes), program).status();
}

// Prints the token when the program has said where it listens, for which the file of what an
// earlier one said is removed first.
std::string start_line(const std::string& port) {
  return fmt::format(
      "d=$HOME/.local/share/hone; umask 077; "
      "if [ -f \"$d/serve.pid\" ]; then p=$(cat \"$d/serve.pid\"); "
      "if [ \"$(cat /proc/$p/comm 2>/dev/null)\" = hone-serve ]; then kill \"$p\"; "
      "i=0; while [ -d /proc/$p ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done; fi; fi; "
      "rm -f \"$d/serve.log\"; "
      "setsid \"$d/hone-serve\" --port {} --listen 0.0.0.0 --token-file \"$d/token\" "
      ">\"$d/serve.log\" 2>&1 </dev/null & p=$!; echo $p >\"$d/serve.pid\"; "
      "i=0; while [ $i -lt 100 ]; do "
      "if grep -qs '^measures for tuners' \"$d/serve.log\"; then cat \"$d/token\"; exit 0; fi; "
      "kill -0 $p 2>/dev/null || break; sleep 0.1; i=$((i+1)); done; "
      "cat \"$d/serve.log\" >&2; exit 1",
      port);
}

// A text in quotation marks, as TOML reads it.
std::string toml_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < ' ' || c == 0x7f;
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += is_control ? fmt::format("\\u{:04x}", c) : std::string(1, c);
  }
  return quoted + '"';
}

Status write_files(const Deploy& deploy, const std::string& address, const std::string& token_file,
                   const std::string& token) {
  HONE_RETURN_IF_ERROR(write_file_atomic(token_file, token + "\n", 0600));
  const std::filesystem::path folder = std::filesystem::absolute(deploy.output).parent_path();
  const std::string relative = std::filesystem::absolute(token_file)
                                   .lexically_normal()
                                   .lexically_relative(folder.lexically_normal())
                                   .string();
  return write_file_atomic(
      deploy.output,
      fmt::format("# {}, where hone deploy has put hone-serve\naddress = {}\n"
                  "token_file = {}\n",
                  deploy.board, toml_text(address + ":" + deploy.port), toml_text(relative)));
}

// Writes the board's file and its token, and asks the board by them what it is. They stay if it
// answers.
Result<Device> write_and_ask(const Deploy& deploy, const std::string& address,
                             const std::string& token_file, const std::string& token) {
  Status status = write_files(deploy, address, token_file, token);
  if (status.ok()) {
    Result<Device> device = find_device("host", deploy.output);
    if (device.ok()) return device;
    status =
        error(device.status().code(),
              "hone-serve was started on {}, but port {} of it cannot be reached from here: {}",
              deploy.board, deploy.port, device.status().message());
  }
  std::error_code ignored;
  for (const std::string& file : {deploy.output, token_file})
    std::filesystem::remove(file, ignored);
  return status;
}

bool are_one_file(const std::string& one, const std::string& other) {
  std::error_code ignored;
  return std::filesystem::absolute(one, ignored).lexically_normal() ==
         std::filesystem::absolute(other, ignored).lexically_normal();
}

Status deploy_to(const Deploy& deploy) {
  HONE_RETURN_IF_ERROR(of_option("--port", parse_int(deploy.port, 1, 65535)).status());
  HONE_ASSIGN_OR_RETURN(const RemoteShell shell, shell_of(deploy));
  const std::string token_file =
      deploy.token_file.empty()
          ? std::filesystem::path(deploy.output).replace_extension("token").string()
          : deploy.token_file;
  if (are_one_file(deploy.output, token_file))
    return invalid("{} cannot be both the board's file and its token: name another file by -o",
                   token_file);
  for (const std::string& file : {deploy.output, token_file}) {
    if (file_exists(file))
      return invalid("{} is there already: remove it, or name another file by -o", file);
  }
  HONE_ASSIGN_OR_RETURN(const std::string address, address_of(shell));
  HONE_ASSIGN_OR_RETURN(const std::string program, find_program(shell));
  HONE_RETURN_IF_ERROR(copy_program(shell, program));
  HONE_ASSIGN_OR_RETURN(const std::string token, run_there(shell, start_line(deploy.port)));
  HONE_ASSIGN_OR_RETURN(const Device device,
                        write_and_ask(deploy, with_brackets(address), token_file, token));
  fmt::print("{} is a {} with {} cores; hone tune --machine {} measures there\n", deploy.board,
             device.cpu, device.cores, deploy.output);
  return ok_status();
}

}  // namespace

Command deploy_command(CLI::App& root) {
  const auto options = std::make_shared<Deploy>();
  CLI::App* app = root.add_subcommand(
      "deploy", "Copy hone-serve to a board by ssh, start it, and write its file for --machine");
  app->add_option("BOARD", options->board, "The board, as ssh takes it")
      ->required()
      ->type_name("USER@HOST");
  app->add_option("-o,--output", options->output, "The board's file to write")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("--port", options->port, "The port that hone-serve listens on")
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--token-file", options->token_file,
                  "Where to write the copy of the board's token. Default: beside the board's file, "
                  "as board.token")
      ->type_name("FILE");
  app->add_option("--ssh-port", options->ssh_port, "The port of the board's sshd")->type_name("N");
  app->add_option("--identity", options->identity, "The file of the key that ssh uses")
      ->type_name("FILE");
  app->footer(
      "The program goes to ~/.local/share/hone on the board and needs nothing else there but glibc. "
      "It listens on all\n"
      "network interfaces without TLS until the board is shut down: deploy it again then. "
      "See docs/user/remote.md.");
  return {app,
          [options] { return deploy_to(*options); },
          [options](FileRoles& files) { files.written("--output", options->output); },
          {}};
}

}  // namespace hone::tool
