#include "hone/search/policy_state.h"

#include <fmt/format.h>

#include <filesystem>

#include "hone/base/file.h"
#include "hone/base/hash.h"

namespace hone::search {
namespace {

constexpr std::string_view kFirstLine = "hone policy state 1\n";

std::string header_of(const Policy& policy, std::string_view body) {
  return fmt::format("{}strategy {}\nhash {:016x}\n", kFirstLine, policy.name(), hash_string(body));
}

Status parse(std::string_view text, Policy& policy) {
  if (!text.starts_with(kFirstLine)) {
    return invalid(
        "it is no state of a search strategy that this version can read, which begins "
        "with 'hone policy state 1'");
  }
  const std::string strategy = fmt::format("{}strategy {}\n", kFirstLine, policy.name());
  if (!text.starts_with(strategy)) {
    return invalid("it is the state of another search strategy than '{}', or damaged",
                   policy.name());
  }
  const size_t begin = std::min(text.find('\n', strategy.size()), text.size() - 1) + 1;
  const std::string_view body = text.substr(begin);
  if (text.substr(0, begin) != header_of(policy, body))
    return invalid("it is damaged: its hash is not that of its content");
  return policy.load(body);
}

}  // namespace

Status load_policy_state(const std::string& path, Policy& policy) {
  HONE_RETURN_IF_ERROR(policy.save().status());
  if (!file_exists(path)) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (folder.empty() || std::filesystem::is_directory(folder)) return ok_status();
    return error(Code::kNotFound, "{}: there is no folder {} to write it to", path,
                 folder.string());
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  const Status status = parse(text, policy);
  if (!status.ok()) return invalid("{}: {}", path, status.message());
  return ok_status();
}

Status save_policy_state(const std::string& path, const Policy& policy) {
  HONE_ASSIGN_OR_RETURN(const std::string body, policy.save());
  return write_file_atomic(path, header_of(policy, body) + body);
}

}  // namespace hone::search
