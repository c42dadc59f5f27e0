#include "remote_shell.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string_view>
#include <utility>

#include "hone/base/file.h"

#include "shell_word.h"

extern "C" char** environ;  // NOLINT: POSIX's name

namespace hone::tool {
namespace {

constexpr int kOfSsh = 255;  // its exit status if the failure is its own

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// Runs a program with these files as its input, output and errors, and returns its exit status.
Result<int> run_program(std::vector<std::string> words, const std::string& input,
                        const std::string& output, const std::string& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), kWrite, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), kWrite, 0600);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int code = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code == ENOENT)
    return error(Code::kUnsupported,
                 "this needs the program ssh, which is not here (apt-get install openssh-client)");
  if (code != 0) return error(Code::kIo, "cannot start {}: {}", argv[0], errno_text(code));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kOfSsh;
}

struct Answer {
  int status;
  std::string printed, said;
  [[nodiscard]] std::string why() const { return last_line(said.empty() ? printed : said); }
};

// Runs ssh with words before and behind the host.
Result<Answer> run_ssh(const RemoteShell& shell, std::vector<std::string> words,
                       const std::vector<std::string>& command, const std::string& input_file) {
  HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create("hone-ssh"));
  words.insert(words.begin(), "ssh");
  words.insert(words.end(), shell.options.begin(), shell.options.end());
  words.insert(words.end(), {"--", shell.host});
  words.insert(words.end(), command.begin(), command.end());
  const std::string output = folder.file("output"), errors = folder.file("errors");
  HONE_ASSIGN_OR_RETURN(
      const int status,
      run_program(words, input_file.empty() ? "/dev/null" : input_file, output, errors));
  Answer answer{.status = status};
  HONE_ASSIGN_OR_RETURN(answer.printed, read_file(output));
  HONE_ASSIGN_OR_RETURN(answer.said, read_file(errors));
  return answer;
}

Status unreachable(const RemoteShell& shell, const Answer& answer) {
  return error(Code::kIo, "cannot reach {} by ssh: {}", shell.host, answer.why());
}

}  // namespace

Result<std::string> run_there(const RemoteShell& shell, const std::string& line,
                              const std::string& input_file) {
  // A host that is gone ends the command after 15 s. The user's shell there, which reads the
  // command, may be one that does not read lines of sh.
  HONE_ASSIGN_OR_RETURN(const Answer answer,
                        run_ssh(shell,
                                {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                                 "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"},
                                {"exec sh -c " + quoted(line)}, input_file));
  if (answer.status == 0) return last_line(answer.printed);
  if (answer.status == kOfSsh) return unreachable(shell, answer);
  return error(Code::kIo, "{}: {}", shell.host, answer.why());
}

Result<std::string> address_of(const RemoteShell& shell) {
  constexpr std::string_view kKey = "hostname ";
  HONE_ASSIGN_OR_RETURN(const Answer answer, run_ssh(shell, {"-G"}, {}, ""));
  if (answer.status != 0) return unreachable(shell, answer);
  std::istringstream lines(answer.printed);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return error(Code::kIo, "ssh -G {} prints no hostname", shell.host);
}

}  // namespace hone::tool
