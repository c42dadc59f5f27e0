// The JSON text of a DataSplit.
#include <nlohmann/json.hpp>

#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/learn/data_split.h"

namespace hone::learn {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "hone split";
constexpr int kVersion = 1;
constexpr std::pair<const char*, Part> kParts[] = {
    {"train", Part::kTrain}, {"validation", Part::kValidation}, {"test", Part::kTest}};

Json lists_of(const std::map<uint64_t, Part>& parts) {
  Json json = Json::object();
  for (const auto& [name, part] : kParts) {
    Json list = Json::array();
    for (const auto& [key, its] : parts) {
      if (its == part) list.push_back(hash_hex(key));
    }
    json[name] = std::move(list);
  }
  return json;
}

Result<std::map<uint64_t, Part>> parse_lists(const Json& json) {
  std::map<uint64_t, Part> parts;
  for (const auto& [name, part] : kParts) {
    for (const Json& text : json.at(name)) {
      HONE_ASSIGN_OR_RETURN(const uint64_t key, parse_key(text.get<std::string>()));
      if (!parts.emplace(key, part).second)
        return invalid("{} is listed twice", text.get<std::string>());
    }
  }
  return parts;
}

Result<DataSplit> parse(const Json& json, const std::string& space_version) {
  if (!json.is_object() || json.value("format", "") != kFormat)
    return invalid("no split, expected what hone dataset split writes");
  if (json.at("version") != kVersion) {
    return invalid("format version {}, expected {}: make the split anew", json["version"].dump(),
                   kVersion);
  }
  DataSplit split;
  split.space_version = json.at("space_version").get<std::string>();
  if (split.space_version != space_version) {
    return invalid("a split of schedules of space version {}, expected {}: make it anew",
                   split.space_version, space_version);
  }
  HONE_ASSIGN_OR_RETURN(split.options.by, parse_split_by(json.at("by").get<std::string>()));
  split.options.held_out = json.at("held_out").get<std::vector<std::string>>();
  split.options.fraction = json.at("fraction").get<double>();
  split.options.validation = json.at("validation_fraction").get<double>();
  split.options.seed = json.at("seed").get<uint64_t>();
  HONE_ASSIGN_OR_RETURN(split.tasks, parse_lists(json.at("tasks")));
  for (const auto& [task, lists] : json.at("schedules").items()) {
    HONE_ASSIGN_OR_RETURN(const uint64_t key, parse_key(task));
    HONE_ASSIGN_OR_RETURN(split.schedules[key], parse_lists(lists));
  }
  return split;
}

}  // namespace

std::string format(const DataSplit& split) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"space_version", split.space_version},
               {"by", split_by_name(split.options.by)},
               {"held_out", split.options.held_out},
               {"fraction", split.options.fraction},
               {"validation_fraction", split.options.validation},
               {"seed", split.options.seed},
               {"tasks", lists_of(split.tasks)},
               {"schedules", Json::object()}};
  for (const auto& [task, parts] : split.schedules)
    json["schedules"][hash_hex(task)] = lists_of(parts);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<DataSplit> parse_data_split(std::string_view text, std::string_view name,
                                   const std::string& space_version) {
  try {
    Result<DataSplit> split = parse(Json::parse(text), space_version);
    if (!split.ok()) return invalid("{}: {}", name, split.status().message());
    return split;
  } catch (const nlohmann::json::exception& e) {  // the library's only way to say it
    return invalid("{}: no split that can be read: {}", name, e.what());
  }
}

}  // namespace hone::learn
