#include "remote_shell.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace

Result<std::string> run_there(const RemoteShell& shell, const std::string& line,
                              const std::string& input_file) {
  HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create("hone-ssh"));
  std::vector<std::string> words = {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
  // A host that is gone ends the command after 15 s.
  words.insert(words.end(), {"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"});
  words.insert(words.end(), shell.options.begin(), shell.options.end());
  // The user's shell there, which reads the command, may be one that does not read lines of sh.
  words.insert(words.end(), {"--", shell.host, "exec sh -c " + quoted(line)});
  const std::string output = folder.file("output"), errors = folder.file("errors");
  HONE_ASSIGN_OR_RETURN(
      const int status,
      run_program(words, input_file.empty() ? "/dev/null" : input_file, output, errors));
  HONE_ASSIGN_OR_RETURN(const std::string printed, read_file(output));
  if (status == 0) return last_line(printed);
  HONE_ASSIGN_OR_RETURN(const std::string said, read_file(errors));
  const std::string why = last_line(said.empty() ? printed : said);
  if (status == kOfSsh) return error(Code::kIo, "cannot reach {} by ssh: {}", shell.host, why);
  return error(Code::kIo, "{}: {}", shell.host, why);
}

}  // namespace hone::tool
