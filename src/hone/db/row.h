// db/row.h - the SQL that both stores share: the columns of a trial, how a row becomes a record,
// and the conditions of a filter (internal to db). Parameters are $1, $2, ..., in the order in
// which they are bound, which both SQLite and PostgreSQL understand.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "hone/db/trial_store.h"
#include "hone/trial/record_numbers.h"

namespace hone::db {

inline constexpr const char* kColumnsOfVersion1 =
    "trial.id, task.key, task.kernel_class, device.key, trial.threads, trial.version, trial.algorithm, "
    "trial.steps, trial.decisions, trial.outcome, trial.message, trial.times, trial.centre, trial.low, "
    "trial.high, trial.verified, trial.seed, trial.unix_time, trial.host_load, trial.model";
inline constexpr const char* kColumnsOfVersion2 =
    ", trial.drift, trial.crowned, trial.duel, trial.others, trial.steal";
// The columns that format version 4 (version 2 of PostgreSQL's tables) added, and their values for
// an older store that is only read.
inline constexpr const char* kColumnsOfVersion4 =
    ", trial.memory_bound, trial.core_bound, trial.bounds_source";
inline constexpr const char* kBeforeVersion4 = ", 0.0, 0.0, ''";
// The column that format version 6 (version 4 of PostgreSQL's tables) added, and its value for an
// older store, which follows from the steps (trial/accuracy.h).
inline constexpr const char* kAccuracy = "trial.accuracy";
inline constexpr const char* kAccuracyBeforeVersion6 =
    "CASE WHEN trial.steps LIKE '%narrow(%' THEN 2 WHEN trial.steps LIKE '%winograd(%' OR "
    "trial.steps LIKE '%strassen(%' THEN 1 ELSE 0 END";
inline constexpr int kNumColumns = 29;
inline constexpr const char* kFromTrial =
    " FROM trial JOIN task ON task.id = trial.task JOIN device ON device.id = trial.device ";

// This follows kFromTrial to select the trials that a network ($1) uses instead of others, whose
// steps are best.steps.
inline constexpr const char* kChosen =
    "JOIN choice ON choice.chosen = trial.id JOIN trial AS best ON best.id = choice.best "
    "WHERE choice.network = $1 AND trial.verified = 1 ORDER BY choice.best";
// Deletes what a network ($1) uses instead of the schedule of trial $2 or of trial $3.
inline constexpr const char* kForgetChoice =
    "DELETE FROM choice WHERE network = $1 AND EXISTS (SELECT 1 FROM trial AS old JOIN trial AS best "
    "ON best.task = old.task AND best.device = old.device AND best.threads = old.threads AND "
    "best.steps = old.steps WHERE old.id = choice.best AND best.id IN ($2, $3))";
inline constexpr const char* kAddChoice =
    "INSERT INTO choice (network, best, chosen) VALUES ($1, $2, $3) ON CONFLICT (network, best) DO "
    "UPDATE SET chosen = excluded.chosen";
// The first versions of SQLite's files and of PostgreSQL's tables that have choices.
inline constexpr int kFirstWithChoices = 8, kFirstPostgresWithChoices = 6;

// Selects the ids of the fastest verified trials of a task ($1), device ($2) and number of threads
// ($3), with accuracies from $4 to $5, of the version $6 and the algorithm $7 (empty: any), at most
// $8 of each accuracy. The index trial_best has those of one accuracy in order of time, so a limit
// reads only that many rows of each. If times are equal, the older trial comes first.
[[nodiscard]] std::string best_ids(const std::string& from, const std::string& accuracy);

// Parses what hash_hex printed.
[[nodiscard]] std::optional<uint64_t> parse_key(std::string_view text);
[[nodiscard]] Status bad_field(const std::string& store, int64_t id, const char* field,
                               std::string_view found);
[[nodiscard]] Status bad_record(const std::string& store, int64_t id, std::string_view why);
// Selects the choices that are inconsistent: the network and the ids of the two trials. Both must
// have the same task, device and number of threads.
inline constexpr const char* kBadChoices =
    "SELECT choice.network, choice.best, choice.chosen FROM choice LEFT JOIN trial AS best ON "
    "best.id = choice.best LEFT JOIN trial AS chosen ON chosen.id = choice.chosen WHERE best.id IS "
    "NULL OR chosen.id IS NULL OR best.task <> chosen.task OR best.device <> chosen.device OR "
    "best.threads <> chosen.threads LIMIT 20";
[[nodiscard]] std::string bad_choice(std::string_view network, int64_t best, int64_t chosen);

// Options of reading records: with the task's text, and also with numbers that check_numbers()
// refuses. The latter is for callers that have called verify(): query() then returns all records,
// so that each can be looked at.
struct Reading {
  bool with_text = false;
  bool unchecked = false;
};

// Reads a row of the columns of all versions, and of the task's text if asked to. A Row has
// integer(column), real(column), text(column) and reals(column), a list of times.
template <typename Row>
Result<trial::Record> read_record(const Row& row, const std::string& store,
                                  const Reading& reading = {}) {
  trial::Record r;
  r.id = row.integer(0);
  const std::string task = row.text(1), outcome = row.text(9), seed = row.text(16);
  const std::optional<uint64_t> key = parse_key(task);
  if (!key) return bad_field(store, r.id, "task key", task);
  const std::optional<trial::Outcome> parsed = trial::parse_outcome(outcome);
  if (!parsed) return bad_field(store, r.id, "outcome", outcome);
  const std::optional<uint64_t> seed_value = parse_key(seed);
  if (!seed_value) return bad_field(store, r.id, "seed", seed);
  r.task = *key, r.outcome = *parsed, r.seed = *seed_value;
  r.kernel_class = row.text(2);
  r.device = row.text(3);
  r.threads = static_cast<int>(std::clamp<int64_t>(row.integer(4), 0, trial::kMostThreads + 1));
  r.version = row.text(5), r.algorithm = row.text(6), r.steps = row.text(7);
  r.decisions = row.text(8);
  r.message = row.text(10);
  r.times = row.reals(11);
  r.centre = row.real(12), r.low = row.real(13), r.high = row.real(14);
  r.verified = row.integer(15) != 0;
  r.unix_time = row.integer(17);
  r.host_load = row.real(18);
  r.model = row.text(19);
  r.drift = row.real(20);
  r.crowned = row.integer(21) != 0;
  r.duel = row.reals(22);
  r.others = row.real(23), r.steal = row.real(24);
  if (std::string source = row.text(27); !source.empty())
    r.bounds = {{row.real(25), row.real(26)}, std::move(source)};
  const int64_t accuracy = row.integer(28);
  if (accuracy < 0 || accuracy > static_cast<int64_t>(trial::Accuracy::kFast))
    return bad_field(store, r.id, "accuracy", std::to_string(accuracy));
  r.accuracy = static_cast<trial::Accuracy>(accuracy);
  if (!reading.unchecked) {
    if (const Status status = check_numbers(r); !status.ok())
      return bad_record(store, r.id, status.message());
  }
  if (reading.with_text) r.task_text = row.text(kNumColumns);
  return r;
}

struct Parameter {
  Parameter(int64_t value)  // NOLINT: implicit by design
      : is_integer(true), integer(value), text(std::to_string(value)) {}
  Parameter(std::string value)  // NOLINT: implicit by design
      : text(std::move(value)) {}
  bool is_integer = false;
  int64_t integer = 0;
  std::string text;  // text of an integer, too
};
struct Conditions {
  std::string where;  // "WHERE trial.id > $1 AND ... ORDER BY trial.id LIMIT $7"
  std::vector<Parameter> parameters;
};
// Returns the conditions of all fields of a filter but fastest_only. `unlimited` is the value of
// LIMIT that means "all".
[[nodiscard]] Conditions conditions_of(const Filter& filter, int64_t unlimited);

}  // namespace hone::db
