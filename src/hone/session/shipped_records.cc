#include "hone/session/shipped_records.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <tuple>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/installation.h"
#include "hone/db/copy.h"
#include "hone/search/transfer.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kHardlySlower = 1.15;  // another algorithm may win on another shape
constexpr size_t kAlgorithms = 2;       // at most, of one task
constexpr size_t kFields = 11;

std::string file_name(std::string_view device) {
  return fmt::format("{}.jsonl", device.substr(0, device.find('-')));
}

Result<trial::Record> parse_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("expected a JSON object");
  Status status;
  const auto find = [&](const char* field, const char* expected,
                        bool (Json::*is)() const noexcept) {
    const auto found = json.find(field);
    const bool good = found != json.end() && ((*found).*is)();
    if (!good && status.ok()) status = invalid("field {}: expected {}", field, expected);
    return good ? &*found : nullptr;
  };
  const auto text = [&](const char* field) {
    const Json* found = find(field, "a text", &Json::is_string);
    return found ? found->get<std::string>() : std::string();
  };
  trial::Record record;
  const std::string key = text("task");
  const auto end = std::from_chars(key.data(), key.data() + key.size(), record.task, 16);
  if (status.ok() && (key.size() != 16 || end.ptr != key.data() + key.size()))
    status = invalid("field task: found '{}', expected 16 hexadecimal digits", key);
  record.kernel_class = text("kernel");
  record.task_text = text("shape");
  record.device = text("device");
  record.version = text("version");
  record.algorithm = text("algorithm");
  record.steps = text("steps");
  record.accuracy = trial::accuracy_of(record.steps);
  record.decisions = text("decisions");
  record.model = text("model");
  if (const Json* threads = find("threads", "an integer", &Json::is_number_integer))
    record.threads = threads->get<int64_t>() < 65536 ? threads->get<int>() : 0;  // 0 is refused
  if (const Json* seconds = find("seconds", "a number", &Json::is_number))
    record.centre = seconds->get<double>();
  HONE_RETURN_IF_ERROR(status);
  if (json.size() != kFields) return invalid("found {} fields, expected {}", json.size(), kFields);
  record.low = record.high = record.centre;
  record.times = {record.centre};
  record.verified = true;
  HONE_RETURN_IF_ERROR(trial::check(record));
  return record;
}

}  // namespace

std::string shipped_folder() {
  std::error_code ignored;
  for (const std::string& folder : installed_places("share/hone/records")) {
    if (fs::is_directory(folder, ignored)) return folder;
  }
  return "";
}

Result<std::vector<trial::Record>> shipped_records(const target::Target& target,
                                                   const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  if (folder.empty()) return std::vector<trial::Record>();
  const fs::path own = fs::path(folder) / file_name(target::device_key(target));
  if (fs::is_regular_file(own, ignored)) {
    files.push_back(own);
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  std::vector<trial::Record> records;
  for (const fs::path& file : files) {
    HONE_ASSIGN_OR_RETURN(const std::string text, read_file(file.string()));
    HONE_ASSIGN_OR_RETURN(std::vector<trial::Record> some, parse_shipped(text, file.string()));
    std::move(some.begin(), some.end(), std::back_inserter(records));
  }
  return records;
}

Result<std::vector<trial::Record>> parse_shipped(std::string_view text, std::string_view name) {
  std::vector<trial::Record> records;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<trial::Record> record = parse_line(line);
    if (!record.ok())
      return error(record.status().code(), "{} line {}: {}", name, number,
                   record.status().message());
    records.push_back(*std::move(record));
  }
  return records;
}

std::string to_shipped_line(const trial::Record& record) {
  const Json json = {{"task", hash_hex(record.task)}, {"kernel", record.kernel_class},
                     {"shape", record.task_text},     {"device", record.device},
                     {"threads", record.threads},     {"version", record.version},
                     {"algorithm", record.algorithm}, {"steps", record.steps},
                     {"decisions", record.decisions}, {"seconds", record.centre},
                     {"model", record.model}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::map<std::string, std::string>> make_shipped_files(db::TrialStore& store) {
  // Fastest of each task, device, number of threads and algorithm.
  std::map<std::tuple<uint64_t, std::string, int>, std::map<std::string, trial::Record>> fastest;
  const db::Filter verified{.verified_only = true, .with_task_text = true};
  HONE_RETURN_IF_ERROR(db::for_each_record(store, verified, [&](trial::Record&& record) {
    if (record.accuracy == trial::Accuracy::kFast) return ok_status();  // not for everybody
    trial::Record& best = fastest[{record.task, record.device, record.threads}][record.algorithm];
    if (best.id == 0 || record.centre < best.centre) best = std::move(record);
    return ok_status();
  }));
  std::map<uint64_t, std::string> shapes;
  std::map<std::string, std::set<std::string>> lines;  // by file
  for (auto& [key, by_algorithm] : fastest) {
    std::vector<trial::Record*> order;
    for (auto& [algorithm, record] : by_algorithm) order.push_back(&record);
    std::stable_sort(
        order.begin(), order.end(),
        [](const trial::Record* a, const trial::Record* b) { return a->centre < b->centre; });
    const auto [text, added] = shapes.try_emplace(std::get<0>(key));
    if (added) text->second = search::shape_text(order[0]->task_text);
    for (size_t i = 0; i < std::min(order.size(), kAlgorithms); ++i) {
      if (order[i]->centre > kHardlySlower * order[0]->centre) break;
      order[i]->task_text = text->second;
      lines[file_name(order[i]->device)].insert(to_shipped_line(*order[i]));
    }
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, sorted] : lines) {
    for (const std::string& line : sorted) files[name] += line;
  }
  return files;
}

}  // namespace hone
