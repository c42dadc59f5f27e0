#include "hone/artifact/linker.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "hone/base/file.h"
#include "hone/base/installation.h"

extern "C" char** environ;  // NOLINT: POSIX's name

namespace hone::artifact {
namespace {

constexpr const char* kExportsFile = "exports.map";
constexpr const char* kMessagesFile = "linker.txt";

std::vector<const char*> linkers_of(Machine machine) {
  if (machine == host_machine()) return {"ld", "ld.lld", "ld.lld-22"};
  if (machine == Machine::kAArch64) return {"ld.lld-22", "ld.lld", "aarch64-linux-gnu-ld"};
  return {"ld.lld-22", "ld.lld", "x86_64-linux-gnu-ld"};
}

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// Empty if there is none. Entries of PATH that are relative (also an empty one, the current folder)
// are left out: what lies in the folder of a model is not run.
std::string find_in_path(const std::string& name) {
  const char* list = std::getenv("PATH");
  std::string rest = list == nullptr ? "/usr/bin:/bin" : list;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = rest.substr(0, end) + "/" + name;
    if (path[0] == '/' && end > 0 && is_program(path)) return path;
    rest.erase(0, end + 1);
  }
  return "";
}

// The files of libc, libm and the loader that this process runs with: a machine without development
// packages has those too.
std::vector<std::string> system_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string name = path.substr(path.rfind('/') + 1);
        const bool wanted = name.starts_with("libc.so.") || name.starts_with("libm.so.") ||
                            name.starts_with("ld-linux");
        if (wanted) static_cast<std::vector<std::string>*>(out)->push_back(path);
        return 0;
      },
      &paths);
  if (paths.empty()) paths = {"-lc", "-lm"};
  return paths;
}

Status write_exports(const std::string& path, const std::vector<std::string>& exports) {
  std::string text = "{\n  global:\n";
  for (const std::string& name : exports) text += "    " + name + ";\n";
  text += "  local: *;\n};\n";
  FILE* file = std::fopen(path.c_str(), "wb");
  const bool ok = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file == nullptr || std::fclose(file) != 0 || !ok)
    return error(Code::kIo, "cannot write {}: {}", path, errno_text(errno));
  return ok_status();
}

// The exit code, or an error if the program cannot be started or was killed. Its messages go to a
// file in the folder.
Result<int> run_in(const std::string& folder, const std::vector<std::string>& command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::unique_ptr<posix_spawn_file_actions_t, int (*)(posix_spawn_file_actions_t*)> freed(
      &actions, posix_spawn_file_actions_destroy);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, kMessagesFile, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  if (failed != 0) return error(Code::kIo, "cannot run {}: {}", command[0], errno_text(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return error(Code::kIo, "cannot wait for {}: {}", command[0], errno_text(errno));
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return error(Code::kIo, "{} was killed by signal {}", command[0], WTERMSIG(status));
}

// The first lines, as one: what is wrong often follows where it is.
std::string first_messages(const std::string& path) {
  constexpr int kLines = 3;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  std::string text;
  char line[512];
  for (int i = 0; file != nullptr && i < kLines && std::fgets(line, sizeof line, file.get()); ++i) {
    text += i == 0 ? "" : " ";
    text.append(line, std::strcspn(line, "\n"));
  }
  return text.empty() ? "no message" : text;
}

Status run_linker(const std::string& folder, const std::vector<std::string>& command) {
  HONE_ASSIGN_OR_RETURN(const int code, run_in(folder, command));
  if (code == 0) return ok_status();
  return error(Code::kIo, "the linker {} failed with code {}: {}", command[0], code,
               first_messages(folder + "/" + kMessagesFile));
}

}  // namespace

Result<std::string> find_linker(const std::string& wanted, Machine machine) {
  if (!wanted.empty()) {
    const std::string path = wanted.find('/') == std::string::npos ? find_in_path(wanted) : wanted;
    if (!path.empty() && is_program(path)) return path;
    return error(Code::kNotFound, "the linker {} is not there", wanted);
  }
  for (const char* name : linkers_of(machine)) {
    std::string path = find_in_path(name);
    if (!path.empty()) return path;
  }
  // An installation for machines without a linker has one, which links for all of them.
  for (std::string& path : installed_places("libexec/hone/ld.lld")) {
    if (is_program(path)) return std::move(path);
  }
  if (machine == host_machine())
    return error(Code::kNotFound,
                 "no linker in PATH, expected ld or ld.lld: apt-get install binutils");
  return error(Code::kNotFound, "no linker for {} in PATH, expected one of {}: apt-get install lld",
               machine_name(machine), fmt::join(linkers_of(machine), ", "));
}

Status link_shared_library(const std::string& linker, const std::string& folder,
                           const std::vector<std::string>& inputs,
                           const std::vector<std::string>& libraries,
                           const std::vector<std::string>& exports, const std::string& output) {
  HONE_RETURN_IF_ERROR(write_exports(folder + "/" + kExportsFile, exports));
  std::vector<std::string> command = {linker, "-shared", "-o", output};
  command.insert(command.end(), {"-z", "noexecstack", "-z", "relro", "-z", "now"});
  command.insert(command.end(), {"--build-id=none", "--hash-style=gnu", "--no-undefined"});
  command.insert(command.end(), {"--eh-frame-hdr", "--strip-debug"});
  // Its own functions call each other, also where another library has one of the same name.
  command.push_back("-Bsymbolic-functions");
  command.push_back(std::string("--version-script=") + kExportsFile);
  command.insert(command.end(), inputs.begin(), inputs.end());
  command.push_back("--as-needed");
  for (const std::string& library : libraries.empty() ? system_libraries() : libraries)
    command.push_back(library);
  return run_linker(folder, command);
}

Status link_object(const std::string& linker, const std::string& folder,
                   const std::vector<std::string>& inputs, const std::string& output) {
  std::vector<std::string> command = {linker, "-r", "--strip-debug", "-o", output};
  command.insert(command.end(), inputs.begin(), inputs.end());
  return run_linker(folder, command);
}

}  // namespace hone::artifact
