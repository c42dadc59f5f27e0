#include "hone/db/json_lines.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/db/record_fields.h"
#include "hone/db/row.h"

namespace hone::db {
namespace {

using Json = nlohmann::ordered_json;

// 64-bit keys are hexadecimal texts: JSON's numbers are doubles to many readers.
Json to_json(uint64_t key) { return hash_hex(key); }
Json to_json(measure::Outcome outcome) { return measure::outcome_name(outcome); }
Json to_json(space::Accuracy accuracy) { return space::accuracy_name(accuracy); }
template <typename T>
Json to_json(const T& value) {
  return value;
}

// Each of these returns what was expected instead, or null if the value was read.
const char* read(const Json& json, std::string& to) {
  if (!json.is_string()) return "a text";
  to = json.get<std::string>();
  return nullptr;
}
const char* read(const Json& json, bool& to) {
  if (!json.is_boolean()) return "true or false";
  to = json.get<bool>();
  return nullptr;
}
const char* read(const Json& json, double& to) {
  if (!json.is_number()) return "a number";
  to = json.get<double>();
  return nullptr;
}
const char* read(const Json& json, std::vector<double>& to) {
  if (!json.is_array()) return "a list of numbers";
  for (const Json& element : json) {
    if (!element.is_number()) return "a list of numbers";
    to.push_back(element.get<double>());
  }
  return nullptr;
}
const char* read(const Json& json, int64_t& to) {
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() || std::in_range<int64_t>(json.get<uint64_t>()));
  if (!fits) return "an integer of 64 bits";
  to = json.get<int64_t>();
  return nullptr;
}
const char* read(const Json& json, int& to) {
  int64_t value = 0;
  if (read(json, value) != nullptr || !std::in_range<int>(value)) return "an integer of 32 bits";
  to = static_cast<int>(value);
  return nullptr;
}
// A text that `parse` has a value for.
template <typename T, typename Parse>
const char* read_parsed(const Json& json, const Parse& parse, const char* expected, T& to) {
  const std::optional<T> value = json.is_string() ? parse(json.get<std::string>()) : std::nullopt;
  if (!value) return expected;
  to = *value;
  return nullptr;
}
const char* read(const Json& json, uint64_t& to) {
  return read_parsed(json, parse_key, "16 hexadecimal digits", to);
}
const char* read(const Json& json, measure::Outcome& to) {
  return read_parsed(json, measure::parse_outcome, "an outcome such as ok", to);
}
const char* read(const Json& json, space::Accuracy& to) {
  return read_parsed(json, space::parse_accuracy, "strict, default or fast", to);
}

// Nothing for a blank line.
Result<std::optional<Record>> parse_numbered(std::string_view line, std::string_view name,
                                             int64_t number) {
  if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::optional<Record>();
  Result<Record> record = parse_json_line(line);
  if (!record.ok()) {
    return error(record.status().code(), "{} line {}: {}", name, number, record.status().message());
  }
  return std::optional<Record>(*std::move(record));
}

}  // namespace

std::string to_json_line(const Record& record) {
  Json json;
  const auto write = [&](const char* name, const auto& value) { json[name] = to_json(value); };
  for_each_field(record, write);
  write(kAccuracyField, record.accuracy);
  if (record.bounds) for_each_bound(*record.bounds, write);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Record> parse_json_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("expected a JSON object");
  Record record;
  Status status;
  size_t fields = 0;
  const auto read_field = [&](const char* name, auto& value) {
    ++fields;
    if (!status.ok()) return;
    const auto found = json.find(name);
    if (found == json.end()) {
      status = invalid("there is no field '{}'", name);
    } else if (const char* expected = read(*found, value); expected != nullptr) {
      status = invalid("field '{}': expected {}", name, expected);
    }
  };
  for_each_field(record, read_field);
  record.accuracy = accuracy_of(record.steps);
  if (json.contains(kAccuracyField)) read_field(kAccuracyField, record.accuracy);
  if (json.contains("bounds_source")) for_each_bound(record.bounds.emplace(), read_field);
  HONE_RETURN_IF_ERROR(status);
  if (json.size() != fields)
    return invalid("found {} fields, expected {}: one is unknown", json.size(), fields);
  HONE_RETURN_IF_ERROR(check(record));
  return record;
}

Result<std::vector<Record>> parse_json_lines(std::string_view text, std::string_view name) {
  std::vector<Record> records;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    HONE_ASSIGN_OR_RETURN(std::optional<Record> record,
                          parse_numbered(text.substr(0, end), name, number));
    if (record) records.push_back(*std::move(record));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return records;
}

Status for_each_json_line(const std::string& path, const std::function<Status(Record&&)>& visit) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) {
    return error(errno == ENOENT ? Code::kNotFound : Code::kIo, "cannot read {}: {}", path,
                 errno_text(errno));
  }
  char* line = nullptr;
  size_t room = 0;
  Status status;
  for (int64_t number = 1; status.ok(); ++number) {
    const ssize_t length = ::getline(&line, &room, file.get());
    if (length < 0) {
      if (!std::feof(file.get()))
        status = error(Code::kIo, "cannot read {}: {}", path, errno_text(errno));
      break;
    }
    Result<std::optional<Record>> record =
        parse_numbered({line, static_cast<size_t>(length)}, path, number);
    status = record.status();
    if (record.ok() && *record) status = visit(std::move(**record));
  }
  std::free(line);
  return status;
}

}  // namespace hone::db
