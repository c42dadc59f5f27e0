#include "hone/db/json_lines.h"

#include <nlohmann/json.hpp>

#include <charconv>

#include "hone/base/hash.h"

namespace hone::db {
namespace {

using Json = nlohmann::ordered_json;

// One list of fields for writing and reading. 64-bit keys are hexadecimal texts: JSON's numbers are
// doubles to many readers.
template <typename Visitor, typename R>
void for_each_field(R& r, const Visitor& visit) {
  visit("kernel", r.kernel_class);
  visit("text", r.task_text);
  visit("device", r.device);
  visit("threads", r.threads);
  visit("version", r.version);
  visit("algorithm", r.algorithm);
  visit("steps", r.steps);
  visit("decisions", r.decisions);
  visit("message", r.message);
  visit("times", r.times);
  visit("centre", r.centre);
  visit("low", r.low);
  visit("high", r.high);
  visit("verified", r.verified);
  visit("unix_time", r.unix_time);
  visit("host_load", r.host_load);
  visit("model", r.model);
}
constexpr size_t kFields = 17 + 3;  // and task, outcome and seed

bool has_type(const Json& json, const std::string&) { return json.is_string(); }
bool has_type(const Json& json, bool) { return json.is_boolean(); }
bool has_type(const Json& json, int) { return json.is_number_integer(); }
bool has_type(const Json& json, int64_t) { return json.is_number_integer(); }
bool has_type(const Json& json, double) { return json.is_number(); }
bool has_type(const Json& json, const std::vector<double>&) {
  if (!json.is_array()) return false;
  for (const Json& element : json) {
    if (!element.is_number()) return false;
  }
  return true;
}

Result<uint64_t> parse_key(const Json& json, const char* field) {
  const auto it = json.find(field);
  if (it == json.end()) return invalid("there is no field '{}'", field);
  if (!it->is_string()) return invalid("field '{}': expected 16 hexadecimal digits", field);
  const std::string text = it->get<std::string>();
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || end.ec != std::errc() || end.ptr != text.data() + text.size())
    return invalid("field '{}': found '{}', expected 16 hexadecimal digits", field, text);
  return value;
}

}  // namespace

std::string to_json_line(const Record& record) {
  Json json;
  json["task"] = hash_hex(record.task);
  json["outcome"] = measure::outcome_name(record.outcome);
  json["seed"] = hash_hex(record.seed);
  for_each_field(record, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Record> parse_json_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("expected a JSON object");
  Record record;
  HONE_ASSIGN_OR_RETURN(record.task, parse_key(json, "task"));
  HONE_ASSIGN_OR_RETURN(record.seed, parse_key(json, "seed"));
  const auto outcome = json.find("outcome");
  if (outcome == json.end() || !outcome->is_string())
    return invalid("there is no field 'outcome' with a text");
  const auto parsed = measure::parse_outcome(outcome->get<std::string>());
  if (!parsed) return invalid("field 'outcome': '{}' is unknown", outcome->get<std::string>());
  record.outcome = *parsed;
  Status status;
  for_each_field(record, [&](const char* name, auto& value) {
    const auto it = json.find(name);
    if (it == json.end()) {
      if (status.ok()) status = invalid("there is no field '{}'", name);
    } else if (!has_type(*it, value)) {
      if (status.ok())
        status = invalid("field '{}': found {}, another type is expected", name, it->type_name());
    } else {
      it->get_to(value);
    }
  });
  HONE_RETURN_IF_ERROR(status);
  if (json.size() != kFields)
    return invalid("found {} fields, expected {}: one is unknown", json.size(), kFields);
  HONE_RETURN_IF_ERROR(check(record));
  return record;
}

Result<std::vector<Record>> parse_json_lines(std::string_view text, std::string_view name) {
  std::vector<Record> records;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<Record> record = parse_json_line(line);
    if (!record.ok())
      return error(record.status().code(), "{} line {}: {}", name, number,
                   record.status().message());
    records.push_back(*std::move(record));
  }
  return records;
}

}  // namespace hone::db
