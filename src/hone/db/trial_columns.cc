#include "hone/db/trial_columns.h"

#include <algorithm>

#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/db/record_fields.h"
#include "hone/trial/record_numbers.h"

namespace hone::db {
namespace {

// A column that tables of earlier versions lack, and its value for them.
struct Later {
  std::string_view name;
  int64_t version;
  const char* before;
};
constexpr Later kLater[] = {
    {"drift", 2, "1.0"},
    {"crowned", 2, "0"},
    {"duel", 2, "x''"},
    {"others", 2, "0.0"},
    {"steal", 2, "0.0"},
    {"memory_bound", 4, "0.0"},
    {"core_bound", 4, "0.0"},
    {"bounds_source", 4, "''"},
    // It follows from the steps (trial/accuracy.h).
    {kAccuracyField, 6,
     "CASE WHEN trial.steps LIKE '%narrow(%' THEN 2 WHEN trial.steps LIKE '%winograd(%' OR "
     "trial.steps LIKE '%strassen(%' THEN 1 ELSE 0 END"},
    {kPartField, 12, "''"},
};

// The figures of code came with this version.
constexpr int64_t kFigures = 9;

bool is_figure(std::string_view field) {
  const CodeFigures none;
  bool found = false;
  for_each_figure(none, [&](std::string_view name, int64_t) { found = found || name == field; });
  return found;
}

// Calls visit(name, field) for the fields that rows have. The text of a task is read on request.
template <typename R, typename Bounds, typename Figures, typename Visitor>
void for_each_column(R& record, Bounds& bounds, Figures& code, const Visitor& visit) {
  for_each_field(record, [&](std::string_view name, auto& field) {
    if (name != "task_text") visit(name, field);
  });
  for_each_bound(bounds, visit);
  visit(kAccuracyField, record.accuracy);
  for_each_figure(code, visit);
  visit(kPartField, record.part);
}

template <typename Visitor>
void for_each_column_name(const Visitor& visit) {
  const trial::Record record;
  const trial::CountedBounds bounds;
  const CodeFigures code;
  for_each_column(record, bounds, code, [&](std::string_view name, const auto&) { visit(name); });
}

Parameter to_parameter(uint64_t key) { return hash_hex(key); }
Parameter to_parameter(trial::Outcome outcome) { return std::string(trial::outcome_name(outcome)); }
Parameter to_parameter(trial::Accuracy accuracy) { return static_cast<int64_t>(accuracy); }
Parameter to_parameter(bool value) { return int64_t{value}; }
Parameter to_parameter(int value) { return int64_t{value}; }
Parameter to_parameter(int64_t value) { return value; }
Parameter to_parameter(double value) { return value; }
Parameter to_parameter(const std::string& value) { return value; }
Parameter to_parameter(const std::vector<double>& values) {
  return std::span<const double>(values);
}

// Each of these returns false if the column has no value of the field's type.
bool read(const Row& row, int column, uint64_t& to) {
  const Result<uint64_t> key = parse_key(row.text(column));
  to = key.ok() ? *key : 0;
  return key.ok();
}
bool read(const Row& row, int column, trial::Outcome& to) {
  const std::optional<trial::Outcome> outcome = trial::parse_outcome(row.text(column));
  to = outcome.value_or(trial::Outcome::kOk);
  return outcome.has_value();
}
bool read(const Row& row, int column, trial::Accuracy& to) {
  const int64_t value = row.integer(column);
  to = static_cast<trial::Accuracy>(value);
  return value >= 0 && value <= static_cast<int64_t>(trial::Accuracy::kFast);
}
bool read(const Row& row, int column, bool& to) { return to = row.integer(column) != 0, true; }
bool read(const Row& row, int column, int& to) {  // the number of threads
  to = static_cast<int>(std::clamp<int64_t>(row.integer(column), 0, trial::kMostThreads + 1));
  return true;
}
bool read(const Row& row, int column, int64_t& to) { return to = row.integer(column), true; }
bool read(const Row& row, int column, double& to) { return to = row.real(column), true; }
bool read(const Row& row, int column, std::string& to) { return to = row.text(column), true; }
bool read(const Row& row, int column, std::vector<double>& to) {
  return to = row.reals(column), true;
}

Status bad_record(const std::string& store, int64_t id, std::string_view why) {
  return error(Code::kIo,
               "database {} is corrupt (trial {}{}); set it aside and use another database", store,
               id, why);
}

}  // namespace

std::string column_of(std::string_view field, int64_t version) {
  if (field == "task" || field == "device") return fmt::format("{}.key", field);
  if (field == "kernel_class") return "task.kernel_class";
  if (version < kFigures && is_figure(field)) return "0";
  const auto* const later =
      std::find_if(std::begin(kLater), std::end(kLater),
                   [&](const Later& one) { return one.name == field && version < one.version; });
  return later != std::end(kLater) ? later->before : fmt::format("trial.{}", field);
}

std::string select_trials(int64_t version, std::string_view extra) {
  std::string sql = "SELECT trial.id";
  for_each_column_name([&](std::string_view name) { sql += ", " + column_of(name, version); });
  if (!extra.empty()) sql += fmt::format(", {}", extra);
  return sql +
         " FROM trial JOIN task ON task.id = trial.task JOIN device ON device.id = trial.device ";
}

Result<trial::Record> read_trial(const Row& row, const std::string& store, bool unchecked,
                                 std::string* extra) {
  trial::Record r;
  trial::CountedBounds bounds;
  CodeFigures code;
  r.id = row.integer(0);
  int column = 1;
  Status status;
  for_each_column(r, bounds, code, [&](std::string_view name, auto& field) {
    if (!read(row, column, field) && status.ok()) {
      status = bad_record(
          store, r.id,
          fmt::format(" has {} '{}'", name == "task" ? "task key" : name, row.text(column)));
    }
    ++column;
  });
  HONE_RETURN_IF_ERROR(status);
  if (!bounds.source.empty()) r.bounds = std::move(bounds);
  if (code != CodeFigures()) r.code = code;
  if (!unchecked) {
    if (const Status found = check_numbers(r); !found.ok())
      return bad_record(store, r.id, fmt::format(": {}", found.message()));
  }
  if (extra != nullptr) *extra = row.text(column);
  return r;
}

const std::string& insert_trial() {
  static const std::string sql = [] {
    std::string names, numbers;
    int count = 0;
    for_each_column_name([&](std::string_view name) {
      if (name == "kernel_class") return;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
      numbers += fmt::format("{}${}", numbers.empty() ? "" : ", ", ++count);
    });
    return fmt::format("INSERT INTO trial ({}) VALUES ({}) RETURNING id", names, numbers);
  }();
  return sql;
}

std::vector<Parameter> trial_parameters(const trial::Record& record, int64_t task, int64_t device) {
  static const trial::CountedBounds none;
  std::vector<Parameter> parameters;
  const trial::CountedBounds& bounds = record.bounds ? *record.bounds : none;
  const CodeFigures code = record.code.value_or(CodeFigures());
  for_each_column(record, bounds, code, [&](std::string_view name, const auto& field) {
    if (name == "kernel_class") return;
    if (name == "task" || name == "device")
      parameters.emplace_back(name == "task" ? task : device);
    else
      parameters.push_back(to_parameter(field));
  });
  return parameters;
}

}  // namespace hone::db
