#include "hone/db/json_lines.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/input_file.h"
#include "hone/base/options.h"
#include "hone/base/printable.h"
#include "hone/db/line_check.h"
#include "hone/db/record_fields.h"
#include "hone/db/trial_columns.h"

namespace hone::db {
namespace {

using Json = nlohmann::ordered_json;

// 64-bit keys are hexadecimal texts: JSON's numbers are doubles to many readers.
Json to_json(uint64_t key) { return hash_hex(key); }
Json to_json(trial::Outcome outcome) { return trial::outcome_name(outcome); }
Json to_json(trial::Accuracy accuracy) { return trial::accuracy_name(accuracy); }
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
  const Result<uint64_t> key = parse_key(json.is_string() ? json.get<std::string>() : "");
  if (!key.ok()) return "16 hexadecimal digits";
  to = *key;
  return nullptr;
}
const char* read(const Json& json, trial::Outcome& to) {
  return read_parsed(json, trial::parse_outcome, "an outcome such as ok", to);
}
const char* read(const Json& json, trial::Accuracy& to) {
  return read_parsed(json, trial::parse_accuracy, "strict, default or fast", to);
}

Status of_line(const Status& status, std::string_view name, int64_t number) {
  if (status.ok()) return status;
  return error(status.code(), "{} line {}: {}", name, number, status.message());
}

// Returns nothing for a blank line.
Result<std::optional<trial::Record>> parse_numbered(std::string_view line, std::string_view name,
                                                    int64_t number) {
  if (line.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return std::optional<trial::Record>();
  Result<trial::Record> record = parse_json_line(line);
  if (!record.ok()) return of_line(record.status(), name, number);
  return std::optional<trial::Record>(*std::move(record));
}

// The lines of a file, one by one. A record has some kilobytes: of a line that is far longer, no
// more than kMostBytes are ever in memory.
class Lines {
 public:
  static Result<Lines> open(const std::string& path) {
    HONE_ASSIGN_OR_RETURN(Descriptor file, open_input(path));
    return Lines(path, std::move(file));
  }
  // Returns nothing at the end. A line is valid until the next call.
  Result<std::optional<std::string_view>> next() {
    begin_ = std::exchange(end_, 0);
    ++number_;
    for (size_t searched = begin_;;) {
      const size_t newline = text_.find('\n', searched);
      if (newline != std::string::npos || (ended_ && begin_ < text_.size())) {
        end_ = std::min(newline, text_.size() - 1) + 1;
        return std::optional(std::string_view(text_).substr(begin_, end_ - begin_));
      }
      if (ended_) return std::optional<std::string_view>();
      text_.erase(0, std::exchange(begin_, 0));
      searched = text_.size();
      if (searched > kMostBytes)
        return invalid("{} line {}: it has more than {} bytes, expected a record", path_, number_,
                       kMostBytes);
      HONE_RETURN_IF_ERROR(read_more());
    }
  }
  [[nodiscard]] int64_t number() const { return number_; }

 private:
  static constexpr size_t kMostBytes = size_t{64} << 20, kChunk = size_t{1} << 18;

  Lines(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  Status read_more() {
    const size_t before = text_.size();
    text_.resize(before + kChunk);
    ssize_t got = 0;
    do {
      got = ::read(file_.get(), text_.data() + before, kChunk);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return error(Code::kIo, "cannot read '{}': {}", path_, errno_text(errno));
    text_.resize(before + static_cast<size_t>(got));
    ended_ = got == 0;
    return ok_status();
  }

  std::string path_;
  Descriptor file_;
  std::string text_;            // the line that next() gave, and what was read around it
  size_t begin_ = 0, end_ = 0;  // bounds of that line
  int64_t number_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string to_json_line(const trial::Record& record) {
  Json json;
  const auto write = [&](const char* name, const auto& value) { json[name] = to_json(value); };
  for_each_field(record, write);
  write(kAccuracyField, record.accuracy);
  if (record.bounds) for_each_bound(*record.bounds, write);
  if (record.code) for_each_figure(*record.code, write);
  if (!record.part.empty()) write(kPartField, record.part);
  return printable_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<trial::Record> parse_json_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("expected a JSON object");
  trial::Record record;
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
  record.accuracy = trial::accuracy_of(record.steps);
  if (json.contains(kAccuracyField)) read_field(kAccuracyField, record.accuracy);
  if (json.contains("bounds_source")) for_each_bound(record.bounds.emplace(), read_field);
  if (json.contains(kFiguresField)) for_each_figure(record.code.emplace(), read_field);
  if (json.contains(kPartField)) read_field(kPartField, record.part);
  HONE_RETURN_IF_ERROR(status);
  if (json.size() != fields)
    return invalid("found {} fields, expected {}: one is unknown", json.size(), fields);
  HONE_RETURN_IF_ERROR(check(record));
  return record;
}

Result<std::vector<trial::Record>> parse_json_lines(std::string_view text, std::string_view name) {
  std::vector<trial::Record> records;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    HONE_ASSIGN_OR_RETURN(std::optional<trial::Record> record,
                          parse_numbered(text.substr(0, end), name, number));
    if (record) records.push_back(*std::move(record));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return records;
}

Status for_each_json_line(const std::string& path,
                          const std::function<Status(trial::Record&&)>& visit) {
  return for_each_json_line(path, visit, nullptr);
}

Status for_each_json_line(const std::string& path,
                          const std::function<Status(trial::Record&&)>& visit,
                          const LineCheck& check) {
  HONE_ASSIGN_OR_RETURN(Lines lines, Lines::open(path));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines.next());
    if (!line) return ok_status();
    HONE_ASSIGN_OR_RETURN(std::optional<trial::Record> record,
                          parse_numbered(*line, path, lines.number()));
    if (!record) continue;
    if (check) HONE_RETURN_IF_ERROR(of_line(check(*record), path, lines.number()));
    HONE_RETURN_IF_ERROR(visit(*std::move(record)));
  }
}

}  // namespace hone::db
