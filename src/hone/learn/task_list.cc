#include "hone/learn/task_list.h"

#include <nlohmann/json.hpp>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/options.h"

namespace hone::learn {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "hone tasks";
constexpr int kVersion = 1;

Result<TaskList> parse(const Json& json) {
  if (!json.is_object() || json.value("format", "") != kFormat)
    return invalid("no list of tasks, expected what hone dataset representatives writes");
  if (json.at("version") != kVersion) {
    return invalid("format version {}, expected {}: make the list anew", json["version"].dump(),
                   kVersion);
  }
  TaskList list;
  list.device = json.at("device").get<std::string>();
  list.excluded_models = json.at("excluded_models").get<std::vector<std::string>>();
  std::set<uint64_t> seen;
  for (const Json& one : json.at("tasks")) {
    ListedTask task;
    const auto text = one.at("task").get<std::string>();
    HONE_ASSIGN_OR_RETURN(task.key, parse_key(text));
    if (!seen.insert(task.key).second) return invalid("task {} is listed twice", text);
    task.kernel_class = one.at("kernel").get<std::string>();
    task.cluster = one.at("cluster").get<int>();
    task.similarity = one.at("similarity").get<double>();
    list.tasks.push_back(std::move(task));
  }
  if (list.tasks.empty()) return invalid("it lists no task");
  return list;
}

Dataset filtered(const Dataset& dataset, const std::set<uint64_t>& keys, bool among) {
  Dataset rest = dataset;
  std::erase_if(rest.tasks,
                [&](const TaskTrials& task) { return keys.contains(task.key) != among; });
  return rest;
}

}  // namespace

std::string format(const TaskList& list) {
  Json tasks = Json::array();
  for (const ListedTask& task : list.tasks) {
    tasks.push_back({{"task", hash_hex(task.key)},
                     {"kernel", task.kernel_class},
                     {"cluster", task.cluster},
                     {"similarity", task.similarity}});
  }
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"device", list.device},
                     {"excluded_models", list.excluded_models},
                     {"tasks", std::move(tasks)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TaskList> parse_task_list(std::string_view text, std::string_view name) {
  try {
    Result<TaskList> list = parse(Json::parse(text));
    if (!list.ok()) return invalid("{}: {}", name, list.status().message());
    return list;
  } catch (const nlohmann::json::exception& e) {  // the library's only way to say it
    return invalid("{}: no list of tasks that can be read: {}", name, e.what());
  }
}

Dataset tasks_among(const Dataset& dataset, const std::set<uint64_t>& keys) {
  return filtered(dataset, keys, true);
}

Dataset tasks_except(const Dataset& dataset, const std::set<uint64_t>& keys) {
  return filtered(dataset, keys, false);
}

}  // namespace hone::learn

namespace hone {

Status write_task_list(const std::string& path, const TaskList& list) {
  return write_file_atomic(path, learn::format(list));
}

Result<TaskList> read_task_list(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return learn::parse_task_list(text, path);
}

}  // namespace hone
