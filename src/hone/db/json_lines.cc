#include "hone/db/json_lines.h"

#include <nlohmann/json.hpp>

#include "hone/base/hash.h"
#include "hone/db/row.h"

namespace hone::db {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFields = 20;

// Reads fields one by one; the first that is missing or of another type is the failure.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  void text(const char* name, std::string& to) {
    if (const Json* found = find(name, "a text", &Json::is_string)) to = found->get<std::string>();
  }
  void flag(const char* name, bool& to) {
    if (const Json* found = find(name, "true or false", &Json::is_boolean)) to = found->get<bool>();
  }
  void real(const char* name, double& to) {
    if (const Json* found = find(name, "a number", &Json::is_number)) to = found->get<double>();
  }
  template <typename Integer>
  void integer(const char* name, Integer& to) {
    const Json* found = find(name, "an integer", &Json::is_number_integer);
    if (found == nullptr) return;
    const auto value = found->get<int64_t>();
    if (!std::in_range<Integer>(value)) return fail(name, "a smaller integer");
    to = static_cast<Integer>(value);
  }
  void key(const char* name, uint64_t& to) {
    std::string digits;
    text(name, digits);
    if (!status_.ok()) return;
    const std::optional<uint64_t> value = parse_key(digits);
    if (!value) return fail(name, "16 hexadecimal digits");
    to = *value;
  }
  void reals(const char* name, std::vector<double>& to) {
    const Json* found = find(name, "a list of numbers", &Json::is_array);
    if (found == nullptr) return;
    for (const Json& each : *found) {
      if (!each.is_number()) return fail(name, "a list of numbers");
      to.push_back(each.get<double>());
    }
  }
  void outcome(const char* name, measure::Outcome& to) {
    std::string word;
    text(name, word);
    if (!status_.ok()) return;
    const auto value = measure::parse_outcome(word);
    if (!value) return fail(name, "an outcome such as ok");
    to = *value;
  }
  [[nodiscard]] Status finish() const {
    if (!status_.ok()) return status_;
    if (json_.size() != kFields)
      return invalid("found {} fields, expected {}", json_.size(), kFields);
    return ok_status();
  }

 private:
  const Json* find(const char* name, const char* expected, bool (Json::*is)() const noexcept) {
    if (!status_.ok()) return nullptr;
    const auto found = json_.find(name);
    if (found != json_.end() && ((*found).*is)()) return &*found;
    fail(name, expected);
    return nullptr;
  }
  void fail(const char* name, const char* expected) {
    status_ = invalid("field {}: expected {}", name, expected);
  }
  const Json& json_;
  Status status_ = ok_status();
};

}  // namespace

std::string to_json_line(const Record& r) {
  const Json json = {{"task", hash_hex(r.task)}, {"kernel_class", r.kernel_class},
                     {"task_text", r.task_text}, {"device", r.device},
                     {"threads", r.threads},     {"version", r.version},
                     {"algorithm", r.algorithm}, {"steps", r.steps},
                     {"decisions", r.decisions}, {"outcome", measure::outcome_name(r.outcome)},
                     {"message", r.message},     {"times", r.times},
                     {"centre", r.centre},       {"low", r.low},
                     {"high", r.high},           {"verified", r.verified},
                     {"seed", hash_hex(r.seed)}, {"unix_time", r.unix_time},
                     {"host_load", r.host_load}, {"model", r.model}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Record> parse_json_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("expected a JSON object");
  Record r;
  Reader reader(json);
  reader.key("task", r.task);
  reader.text("kernel_class", r.kernel_class);
  reader.text("task_text", r.task_text);
  reader.text("device", r.device);
  reader.integer("threads", r.threads);
  reader.text("version", r.version);
  reader.text("algorithm", r.algorithm);
  reader.text("steps", r.steps);
  reader.text("decisions", r.decisions);
  reader.outcome("outcome", r.outcome);
  reader.text("message", r.message);
  reader.reals("times", r.times);
  reader.real("centre", r.centre);
  reader.real("low", r.low);
  reader.real("high", r.high);
  reader.flag("verified", r.verified);
  reader.key("seed", r.seed);
  reader.integer("unix_time", r.unix_time);
  reader.real("host_load", r.host_load);
  reader.text("model", r.model);
  HONE_RETURN_IF_ERROR(reader.finish());
  HONE_RETURN_IF_ERROR(check(r));
  return r;
}

}  // namespace hone::db
