#include "settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "hone/base/options.h"
#include "hone/base/shape_texts.h"

namespace hone::ort {
namespace {

constexpr int kMostThreads = 1024;

struct Option {
  std::string_view name;
  Status (*set)(const std::string& value, Settings& settings);
};

Status set_budget(const std::string& value, Settings& settings) {
  HONE_ASSIGN_OR_RETURN(settings.budget, parse_duration(value));
  return ok_status();
}

Status set_threads(const std::string& value, Settings& settings) {
  HONE_ASSIGN_OR_RETURN(const int64_t threads, parse_int(value, 0, kMostThreads));
  settings.threads = static_cast<int>(threads);
  return ok_status();
}

Status set_database(const std::string& value, Settings& settings) {
  settings.records.use_db = value != "none";
  settings.records.db = value == "none" ? "" : value;
  return ok_status();
}

Status set_accuracy(const std::string& value, Settings& settings) {
  constexpr std::array kLevels = {"strict", "default", "fast"};
  if (std::find(kLevels.begin(), kLevels.end(), value) == kLevels.end())
    return invalid("found '{}', expected strict, default or fast", value);
  settings.accuracy = value;
  return ok_status();
}

// Texts as --shape of the command line has them, with blanks between them.
Status set_shapes(const std::string& value, Settings& settings) {
  std::vector<std::string> texts;
  std::istringstream words(value);
  for (std::string word; words >> word;) texts.push_back(word);
  return parse_shape_ranges(texts, settings.model, "shape");
}

Status set_on_failure(const std::string& value, Settings& settings) {
  if (value != "error" && value != "fallback")
    return invalid("found '{}', expected fallback or error", value);
  settings.must_compile = value == "error";
  return ok_status();
}

constexpr std::array kOptions = {
    Option{"accuracy", set_accuracy}, Option{"budget", set_budget},
    Option{"db", set_database},       Option{"on_failure", set_on_failure},
    Option{"shape", set_shapes},      Option{"threads", set_threads},
};

std::string prefix() {
  std::string text = fmt::format("ep.{}.", kProviderName);
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

Status set_entry(const std::string& key, const std::string& value, Settings& settings) {
  static const std::string kPrefix = prefix();
  if (key.starts_with(kPrefix)) return set_option(key.substr(kPrefix.size()), value, settings);
  if (key == "ep.context_enable") settings.write_context = value == "1";
  if (key == "ep.context_embed_mode") settings.embed_context = value == "1";
  if (key == "ep.context_file_path") settings.context_path = value;
  return ok_status();
}

}  // namespace

Status set_option(const std::string& key, const std::string& value, Settings& settings) {
  const auto option = std::find_if(kOptions.begin(), kOptions.end(),
                                   [&](const Option& each) { return each.name == key; });
  if (option == kOptions.end()) {
    std::string known;
    for (const Option& each : kOptions)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    return invalid("{} has no option '{}', expected one of {}", kProviderName, key, known);
  }
  const Status status = option->set(value, settings);
  if (status.ok()) return status;
  const std::string& message = status.message();
  return {status.code(), fmt::format("{}: option {}{}", kProviderName,
                                     message.starts_with(key) ? "" : key + ": ", message)};
}

Result<Settings> read_settings(const OrtApi& api, const OrtSessionOptions* options) {
  OrtKeyValuePairs* pairs = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api, api.session_options(options, &pairs));
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api.key_value_pairs(pairs, &keys, &values, &count);
  Settings settings;
  Status status;
  for (size_t i = 0; i < count && status.ok(); ++i)
    status = set_entry(keys[i], values[i], settings);
  api.release_key_value_pairs(pairs);
  HONE_RETURN_IF_ERROR(status);
  return settings;
}

}  // namespace hone::ort
