#include "hone/search/policy_state.h"

#include <fmt/format.h>

#include <filesystem>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/next_line.h"
#include "hone/cost/fingerprint.h"
#include "hone/cost/static_score.h"
#include "hone/search/agent/view.h"
#include "hone/trial/schedule_version.h"

namespace hone::search {
namespace {

constexpr std::string_view kFile = "hone policy state ";
constexpr std::string_view kTitle = "hone policy state 2";  // since files say what they are for
constexpr std::string_view kStrategy = "strategy ", kInstructions = "instructions ",
                           kSpace = "space ", kFingerprint = "fingerprint ";
constexpr std::string_view kCommand = "hone policy train";

// Returns which instructions code for the target has.
std::string instructions_of(const target::Target& target) {
  return target.kind() == target::Kind::kCpu
             ? cost::instruction_set(target.cpu())
             : fmt::format("GPUs by {}", target::api_name(target.gpu().api));
}

std::string hash_line(std::string_view rest) {
  return fmt::format("hash {:016x}", hash_string(rest));
}

std::string text_of(const target::Target& target, const Policy& policy, std::string_view learned) {
  const cost::FeatureSet features = state_features(target.kind());
  std::string rest =
      fmt::format("{}{}\n{}{}\n{}{}\n{}\n", kStrategy, policy.name(), kInstructions,
                  instructions_of(target), kSpace, kScheduleVersion, cost::features_line(features));
  for (const std::string& part : cost::fingerprint_parts(features))
    rest += fmt::format("{}{} {}\n", kFingerprint, part, cost::fingerprint(part));
  rest += learned;
  return fmt::format("{}\n{}\n{}", kTitle, hash_line(rest), rest);
}

// Reads the file `path` from its text, line by line.
class Reader {
 public:
  Reader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Status read(const target::Target& target, Policy& policy) {
    HONE_RETURN_IF_ERROR(check_whole());
    HONE_RETURN_IF_ERROR(check_strategy(policy.name()));
    HONE_RETURN_IF_ERROR(check_trained_for(target));
    const Status status = policy.load(text_);
    return status.ok() ? status : invalid("{}: {}", path_, status.message());
  }

 private:
  // Returns what the next line has behind `start`; "" if it begins with something else.
  std::string_view next_after(std::string_view start) {
    const std::string_view line = next_line(text_);
    return line.starts_with(start) ? line.substr(start.size()) : std::string_view();
  }

  Status check_whole() {
    const std::string_view title = next_line(text_);
    if (!title.starts_with(kFile))
      return invalid("{}: it is no state of a search strategy, which begins with '{}'", path_,
                     kTitle);
    if (title != kTitle)
      return invalid("{}: found '{}', expected '{}': train it anew ({})", path_, title, kTitle,
                     kCommand);
    const std::string_view hash = next_line(text_);
    if (hash != hash_line(text_))
      return invalid("{}: it is damaged: its hash is not that of its content", path_);
    return ok_status();
  }

  Status check_strategy(std::string_view expected) {
    const std::string_view found = next_after(kStrategy);
    if (found == expected) return ok_status();
    return invalid("{}: it is the state of search strategy '{}', expected one of '{}'", path_,
                   found, expected);
  }

  Status check_trained_for(const target::Target& target) {
    const std::string instructions = instructions_of(target);
    if (const std::string_view found = next_after(kInstructions); found != instructions)
      return invalid("{}: trained for {}, expected {} for device {}: train it there ({})", path_,
                     found, instructions, target.name, kCommand);
    if (const std::string_view found = next_after(kSpace); found != kScheduleVersion)
      return invalid(
          "{}: trained for version {} of the space of schedules, expected {}: train it anew ({})",
          path_, found, kScheduleVersion, kCommand);
    const cost::FeatureSet set = state_features(target.kind());
    const std::string features = cost::features_line(set);
    if (const std::string_view found = next_line(text_); found != features)
      return invalid("{}: trained for '{}', expected '{}': train it anew ({})", path_, found,
                     features, kCommand);
    for (const std::string& part : cost::fingerprint_parts(set)) {
      const std::string_view found = next_after(fmt::format("{}{} ", kFingerprint, part));
      HONE_RETURN_IF_ERROR(cost::check_fingerprint(part, found, path_, kCommand));
    }
    return ok_status();
  }

  const std::string& path_;
  std::string_view text_;  // what is not read yet
};

}  // namespace

Status load_policy_state(const std::string& path, const target::Target& target, Policy& policy) {
  HONE_RETURN_IF_ERROR(policy.save().status());
  if (!file_exists(path)) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (folder.empty() || std::filesystem::is_directory(folder)) return ok_status();
    return error(Code::kNotFound, "{}: there is no folder {} to write it to", path,
                 folder.string());
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return Reader(path, text).read(target, policy);
}

Status save_policy_state(const std::string& path, const target::Target& target,
                         const Policy& policy) {
  HONE_ASSIGN_OR_RETURN(const std::string learned, policy.save());
  return write_file_atomic(path, text_of(target, policy, learned));
}

}  // namespace hone::search
