#include "hone/remote/machine_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/remote/names.h"

namespace hone::remote {
namespace {

constexpr std::string_view kScheme = "grpc://";
constexpr size_t kLeastToken = 16, kMostToken = 1024;

Status check_address(std::string_view address) {
  const size_t colon = address.rfind(':');
  const bool is_whole = colon != std::string_view::npos && colon > 0 &&
                        address.find_first_of("/?#@ ") == std::string_view::npos;
  if (!is_whole || !parse_int(address.substr(colon + 1), 1, 65535).ok())
    return invalid("address '{}', expected HOST:PORT", address);
  return ok_status();
}

// The keys of a machine's file.
struct MachineFile {
  std::string address, token_file, tls_ca, tls_name, wait;
};

Result<MachineFile> read_machine_file(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return invalid("{}: line {}: {}", path, parsed.error().source().begin.line,
                   parsed.error().description());
  MachineFile file;
  const std::pair<std::string_view, std::string*> keys[] = {{"address", &file.address},
                                                            {"token_file", &file.token_file},
                                                            {"tls_ca", &file.tls_ca},
                                                            {"tls_name", &file.tls_name},
                                                            {"wait", &file.wait}};
  for (const auto& [key, value] : parsed.table()) {
    const auto* const known =
        std::find_if(std::begin(keys), std::end(keys),
                     [name = key.str()](const auto& row) { return row.first == name; });
    if (known == std::end(keys))
      return invalid("{}: unknown key '{}', expected address, token_file, tls_ca, tls_name or wait",
                     path, key.str());
    if (!value.is_string()) return invalid("{}: {} is no text in quotation marks", path, key.str());
    *known->second = value.ref<std::string>();
  }
  if (file.address.empty()) return invalid("{}: there is no address", path);
  return file;
}

// A path in a machine's file is one from the folder of that file.
std::string path_from(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

Result<MachineAddress> parse_machine_file(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const MachineFile file, read_machine_file(path));
  MachineAddress machine{.name = path};
  ConnectMessage& connect = machine.connect;
  connect.address = file.address;
  if (connect.address.starts_with(kScheme)) connect.address.erase(0, kScheme.size());
  if (const Status status = check_address(connect.address); !status.ok())
    return invalid("{}: {}", path, status.message());
  if (!file.wait.empty()) {
    HONE_ASSIGN_OR_RETURN(machine.wait_seconds,
                          of_option(path + ": wait", parse_duration(file.wait)));
  }
  if (!file.tls_ca.empty()) {
    HONE_ASSIGN_OR_RETURN(connect.tls_roots, read_file(path_from(path, file.tls_ca)));
    if (connect.tls_roots.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
      return invalid("{}: tls_ca: there is no certificate in {}", path, file.tls_ca);
  }
  if (!file.tls_name.empty() && file.tls_ca.empty())
    return invalid("{}: tls_name without tls_ca", path);
  connect.tls_name = file.tls_name;
  std::string token_file = path_from(path, file.token_file);
  if (file.token_file.empty()) {
    HONE_ASSIGN_OR_RETURN(token_file, default_token_file());
  }
  HONE_ASSIGN_OR_RETURN(connect.token, read_token(token_file));
  return machine;
}

}  // namespace

Result<MachineAddress> parse_machine(const std::string& text) {
  if (!text.starts_with(kScheme)) {
    if (text.find("://") != std::string::npos)
      return invalid("machine '{}', expected grpc://HOST:PORT or a file", text);
    return parse_machine_file(text);
  }
  MachineAddress machine{.name = text};
  machine.connect.address = text.substr(kScheme.size());
  HONE_RETURN_IF_ERROR(check_address(machine.connect.address));
  HONE_ASSIGN_OR_RETURN(const std::string token_file, default_token_file());
  HONE_ASSIGN_OR_RETURN(machine.connect.token, read_token(token_file));
  return machine;
}

Result<std::string> default_token_file() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return fmt::format("{}/hone/token", config);
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/')
    return error(Code::kNotFound, "there is no home folder (HOME) with the token");
  return fmt::format("{}/.config/hone/token", home);
}

Result<std::string> read_token(const std::string& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) && (found.st_mode & 077) != 0)
    return invalid("{}: other users may read or write this token, expected a file of mode 600",
                   file);
  Result<std::string> token = read_file(file);
  if (token.status().code() == Code::kNotFound)
    return error(Code::kNotFound,
                 "there is no token {}: it is the file that hone serve made, copied here", file);
  HONE_RETURN_IF_ERROR(token.status());
  while (!token->empty() && (token->back() == '\n' || token->back() == '\r')) token->pop_back();
  for (const char c : *token) {
    if (c <= ' ' || c > '~') return invalid("{}: a token is one line of visible characters", file);
  }
  if (token->size() < kLeastToken || token->size() > kMostToken)
    return invalid("{}: a token of {} characters, expected {} to {}", file, token->size(),
                   kLeastToken, kMostToken);
  return token;
}

Result<std::string> read_or_make_token(const std::string& file) {
  if (!file_exists(file)) {
    HONE_ASSIGN_OR_RETURN(const std::string token, random_name());
    std::error_code failure;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), failure);
    HONE_RETURN_IF_ERROR(write_file_atomic(file, token + "\n", 0600));
  }
  return read_token(file);
}

}  // namespace hone::remote
