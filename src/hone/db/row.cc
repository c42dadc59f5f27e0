#include "hone/db/row.h"

#include <charconv>

#include "hone/base/hash.h"

namespace hone::db {

std::string best_ids(const std::string& from, const std::string& accuracy) {
  std::string all;
  for (int level = 0; level <= static_cast<int>(trial::Accuracy::kFast); ++level) {
    all += fmt::format(
        "{0}SELECT id FROM (SELECT trial.id FROM {1} WHERE trial.verified = 1 AND trial.task = "
        "(SELECT id FROM task WHERE key = $1) AND trial.device = (SELECT id FROM device WHERE key = "
        "$2) AND trial.threads = $3 AND {2} = {3} AND {3} BETWEEN $4 AND $5 AND ($6 = '' OR "
        "trial.version = $6) AND ($7 = '' OR trial.algorithm = $7) ORDER BY trial.centre, trial.id "
        "LIMIT $8) AS of_accuracy",
        all.empty() ? "" : " UNION ALL ", from, accuracy, level);
  }
  return all;
}

std::optional<uint64_t> parse_key(std::string_view text) {
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || end.ec != std::errc() || end.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

Status bad_field(const std::string& store, int64_t id, const char* field, std::string_view found) {
  return error(Code::kIo,
               "database {} is corrupt (trial {} has {} '{}'); set it aside and use another --db",
               store, id, field, found);
}

Status bad_record(const std::string& store, int64_t id, std::string_view why) {
  return error(Code::kIo,
               "database {} is corrupt (trial {}: {}); set it aside and use another --db", store,
               id, why);
}

std::string bad_choice(std::string_view network, int64_t best, int64_t chosen) {
  return fmt::format(
      "the network {} has trial {} in the place of trial {}, which is of another kernel", network,
      chosen, best);
}

Conditions conditions_of(const Filter& f, int64_t unlimited) {
  Conditions conditions;
  std::string& where = conditions.where;
  const auto parameter = [&conditions](Parameter value) {
    conditions.parameters.push_back(std::move(value));
    return fmt::format("${}", conditions.parameters.size());
  };
  where = "WHERE trial.id > " + parameter(f.after_id);
  if (f.task) {
    where += fmt::format(" AND trial.task = (SELECT id FROM task WHERE key = {})",
                         parameter(hash_hex(*f.task)));
  }
  if (f.kernel_class) where += " AND task.kernel_class = " + parameter(*f.kernel_class);
  if (f.device) where += " AND device.key = " + parameter(*f.device);
  if (f.version) where += " AND trial.version = " + parameter(*f.version);
  if (f.model) where += " AND trial.model = " + parameter(*f.model);
  if (f.threads) where += " AND trial.threads = " + parameter(int64_t{*f.threads});
  if (f.outcome)
    where += " AND trial.outcome = " + parameter(std::string(trial::outcome_name(*f.outcome)));
  if (f.failed_only) where += " AND trial.outcome <> 'ok'";
  if (f.verified_only) where += " AND trial.verified = 1";
  where += f.newest_first ? " ORDER BY trial.id DESC" : " ORDER BY trial.id";
  where += " LIMIT " + parameter(f.limit < 0 ? unlimited : f.limit);
  return conditions;
}

}  // namespace hone::db
