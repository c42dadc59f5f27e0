#include "hone/db/sql_store.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "hone/base/hash.h"
#include "hone/db/trial_columns.h"

namespace hone::db {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();  // for LIMIT
constexpr int64_t kFirstWithAccuracy = 6, kFirstWithChoices = 8, kFirstWithParts = 12;
constexpr size_t kRemovedAtOnce = 500;

constexpr const char* kAddTask =
    "INSERT INTO task (key, kernel_class, text) VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE "
    "SET text = excluded.text WHERE task.text = '' AND excluded.text <> ''";
constexpr const char* kAddDevice =
    "INSERT INTO device (key) VALUES ($1) ON CONFLICT (key) DO NOTHING";

// This follows select_trials() to select the trials that a network ($1) uses instead of others,
// whose steps are best.steps.
constexpr const char* kChosen =
    "JOIN choice ON choice.chosen = trial.id JOIN trial AS best ON best.id = choice.best "
    "WHERE choice.network = $1 AND trial.verified = 1 ORDER BY choice.best";
// Deletes what a network ($1) uses instead of the schedule of trial $2 or of trial $3.
constexpr const char* kForgetChoice =
    "DELETE FROM choice WHERE network = $1 AND EXISTS (SELECT 1 FROM trial AS old JOIN trial AS "
    "best ON best.task = old.task AND best.device = old.device AND best.threads = old.threads AND "
    "best.steps = old.steps WHERE old.id = choice.best AND best.id IN ($2, $3))";
constexpr const char* kAddChoice =
    "INSERT INTO choice (network, best, chosen) VALUES ($1, $2, $3) ON CONFLICT (network, best) DO "
    "UPDATE SET chosen = excluded.chosen";
// Selects the choices that are inconsistent: the network and the ids of the two trials. Both must
// have the same task, device and number of threads.
constexpr const char* kBadChoices =
    "SELECT choice.network, choice.best, choice.chosen FROM choice LEFT JOIN trial AS best ON "
    "best.id = choice.best LEFT JOIN trial AS chosen ON chosen.id = choice.chosen WHERE best.id IS "
    "NULL OR chosen.id IS NULL OR best.task <> chosen.task OR best.device <> chosen.device OR "
    "best.threads <> chosen.threads LIMIT 20";

// Selects the ids of the fastest verified trials of a task ($1), device ($2) and number of threads
// ($3), with accuracies from $4 to $5, of the version $6 and the algorithm $7 (empty: any), at most
// $8 of each accuracy. The index trial_best has those of one accuracy in order of time, so a limit
// reads only that many rows of each. If times are equal, the older trial comes first.
std::string best_ids(const Dialect& dialect) {
  std::string all;
  for (int level = 0; level <= static_cast<int>(trial::Accuracy::kFast); ++level) {
    all += fmt::format(
        "{0}SELECT id FROM (SELECT trial.id FROM trial{1} WHERE trial.verified = 1 AND trial.task "
        "= (SELECT id FROM task WHERE key = $1) AND trial.device = (SELECT id FROM device WHERE "
        "key = $2) AND trial.threads = $3 AND {2} = {3} AND {3} BETWEEN $4 AND $5 AND ($6 = '' OR "
        "trial.version = $6) AND ($7 = '' OR trial.algorithm = $7) ORDER BY trial.centre, trial.id "
        "LIMIT $8) AS of_accuracy",
        all.empty() ? "" : " UNION ALL ", dialect.by_time, column_of("accuracy", dialect.version),
        level);
  }
  return all;
}

// Selects the id of the fastest trial of each task, device and number of threads, of those that the
// usual accuracy allows. They are among the first ones of each accuracy in the index trial_best,
// which is in order of time: one step through the index per group, however many trials there are.
// Tables that know no accuracies are read as a whole.
std::string fastest_ids(const Dialect& dialect) {
  const bool stepwise = dialect.version >= kFirstWithAccuracy;
  const std::string choose = fmt::format(
      "SELECT id FROM (SELECT trial.id, row_number() OVER (PARTITION BY task, device, threads "
      "ORDER BY centre, trial.id) AS place FROM {} WHERE verified = 1 AND {} < {}) AS placed WHERE "
      "place = 1",
      stepwise ? "first JOIN trial ON trial.id = first.id"
               : fmt::format("trial{}", dialect.by_time),
      column_of("accuracy", dialect.version), static_cast<int>(trial::Accuracy::kFast));
  if (!stepwise) return choose;
  return fmt::format(
      "WITH RECURSIVE first(id) AS (SELECT id FROM (SELECT id FROM trial{0} WHERE verified = 1 "
      "ORDER BY task, device, threads, accuracy, centre, id LIMIT 1) AS earliest UNION ALL SELECT "
      "(SELECT next.id FROM trial AS next{0} WHERE next.verified = 1 AND (next.task, next.device, "
      "next.threads, next.accuracy) > (last.task, last.device, last.threads, last.accuracy) ORDER "
      "BY next.task, next.device, next.threads, next.accuracy, next.centre, next.id LIMIT 1) FROM "
      "first JOIN trial AS last ON last.id = first.id) {1}",
      dialect.by_time, choose);
}

struct Conditions {
  std::string where;  // "WHERE trial.id > $1 AND ... ORDER BY trial.id LIMIT $7"
  std::vector<Parameter> parameters;
};

Conditions conditions_of(const Filter& f, const Dialect& dialect) {
  Conditions conditions;
  std::string& where = conditions.where;
  const auto parameter = [&conditions](Parameter value) {
    conditions.parameters.push_back(std::move(value));
    return fmt::format("${}", conditions.parameters.size());
  };
  where = "WHERE trial.id > " + parameter(f.after_id);
  if (f.fastest_only) where += fmt::format(" AND trial.id IN ({})", fastest_ids(dialect));
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
  if (f.parts != Filter::Parts::kAll && dialect.version >= kFirstWithParts)
    where += f.parts == Filter::Parts::kWhole ? " AND trial.part = ''" : " AND trial.part <> ''";
  where += f.newest_first ? " ORDER BY trial.id DESC" : " ORDER BY trial.id";
  where += " LIMIT " + parameter(f.limit < 0 ? kAll : f.limit);
  return conditions;
}

class SqlStore final : public Store {
 public:
  explicit SqlStore(std::unique_ptr<Database> db)
      : db_(std::move(db)),
        best_(select_trials(db_->dialect().version) + "WHERE trial.id IN (" +
              best_ids(db_->dialect()) + ") ORDER BY trial.centre, trial.id LIMIT $8") {}

  Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) override {
    for (const trial::Record& r : batch) HONE_RETURN_IF_ERROR(check(r));
    std::vector<int64_t> ids;
    if (batch.empty()) return ids;
    HONE_RETURN_IF_ERROR(db_->transact([&]() -> Status {
      HONE_ASSIGN_OR_RETURN(const Ids tasks, intern_tasks(batch));
      HONE_ASSIGN_OR_RETURN(const Ids devices, intern_devices(batch));
      for (const trial::Record& r : batch) {
        HONE_ASSIGN_OR_RETURN(
            const std::optional<int64_t> id,
            find_id(insert_trial(),
                    trial_parameters(r, tasks.at(hash_hex(r.task)), devices.at(r.device))));
        HONE_ASSERT(id.has_value(), "a trial that was added has an id");
        ids.push_back(*id);
      }
      return ok_status();
    }));
    return ids;
  }

  Result<std::vector<trial::Record>> best(const BestQuery& q) override {
    const auto [strictest, least_strict] = q.accuracies();
    const Parameter parameters[] = {hash_hex(q.task), q.device,        int64_t{q.threads},
                                    strictest,        least_strict,    q.version,
                                    q.algorithm,      int64_t{q.limit}};
    std::vector<trial::Record> records;
    HONE_RETURN_IF_ERROR(db_->run(best_, parameters,
                                  [&](const Row& row) -> Status {
                                    HONE_ASSIGN_OR_RETURN(trial::Record r,
                                                          read_trial(row, db_->name()));
                                    records.push_back(std::move(r));
                                    return ok_status();
                                  })
                             .status());
    return records;
  }

  Result<std::vector<trial::Record>> query(const Filter& f) override {
    const Dialect& dialect = db_->dialect();
    if (f.parts == Filter::Parts::kParts && dialect.version < kFirstWithParts)
      return std::vector<trial::Record>();
    const Conditions conditions = conditions_of(f, dialect);
    const std::string select =
        select_trials(dialect.version, f.with_task_text ? "task.text" : "") + conditions.where;
    std::vector<trial::Record> records;
    HONE_RETURN_IF_ERROR(
        db_->run(select, conditions.parameters,
                 [&](const Row& row) -> Status {
                   std::string text;
                   HONE_ASSIGN_OR_RETURN(
                       trial::Record r,
                       read_trial(row, db_->name(), verified_, f.with_task_text ? &text : nullptr));
                   r.task_text = std::move(text);
                   records.push_back(std::move(r));
                   return ok_status();
                 })
            .status());
    return records;
  }

  Status set_verified(int64_t id, trial::Outcome found, std::string_view message) override {
    const Parameter parameters[] = {id, std::string(trial::outcome_name(found)),
                                    std::string(message)};
    return db_->transact([&]() -> Status {
      HONE_ASSIGN_OR_RETURN(
          const int64_t changed,
          found == trial::Outcome::kOk
              ? db_->run("UPDATE trial SET verified = 1 WHERE id = $1 AND outcome = 'ok'",
                         std::span(parameters, 1))
              : db_->run("UPDATE trial SET verified = 0, crowned = 0, outcome = $2, message = $3 "
                         "WHERE id = $1",
                         parameters));
      if (changed == 1) return ok_status();
      return error(Code::kNotFound, "database {} has no successful trial {}", db_->name(), id);
    });
  }

  Status choose(uint64_t network, std::span<const Choice> choices) override {
    return db_->transact([&]() -> Status {
      for (const Choice& c : choices) {
        const Parameter parameters[] = {hash_hex(network), c.best, c.chosen};
        HONE_RETURN_IF_ERROR(db_->run(kForgetChoice, parameters).status());
        if (c.chosen != c.best) HONE_RETURN_IF_ERROR(db_->run(kAddChoice, parameters).status());
      }
      return ok_status();
    });
  }

  Result<std::vector<Chosen>> chosen(uint64_t network) override {
    std::vector<Chosen> result;
    if (db_->dialect().version < kFirstWithChoices) return result;
    const Parameter parameters[] = {hash_hex(network)};
    const std::string select = select_trials(db_->dialect().version, "best.steps") + kChosen;
    HONE_RETURN_IF_ERROR(db_->run(select, parameters,
                                  [&](const Row& row) -> Status {
                                    std::string best;
                                    HONE_ASSIGN_OR_RETURN(
                                        trial::Record r,
                                        read_trial(row, db_->name(), false, &best));
                                    result.push_back({std::move(best), std::move(r)});
                                    return ok_status();
                                  })
                             .status());
    return result;
  }

  Status remove(std::span<const int64_t> ids) override {
    HONE_RETURN_IF_ERROR(db_->transact([&]() -> Status {
      for (size_t begin = 0; begin < ids.size(); begin += kRemovedAtOnce) {
        const auto some = ids.subspan(begin, std::min(kRemovedAtOnce, ids.size() - begin));
        HONE_RETURN_IF_ERROR(
            db_->run(fmt::format("DELETE FROM trial WHERE id IN ({})", fmt::join(some, ", ")))
                .status());
      }
      // A tuner that adds a trial of such a task right now holds a lock on the task's row.
      return db_
          ->run(
              "DELETE FROM task WHERE NOT EXISTS (SELECT 1 FROM trial WHERE trial.task = "
              "task.id)")
          .status();
    }));
    return db_->compact();
  }

  Result<std::vector<std::string>> verify() override {
    verified_ = true;
    HONE_ASSIGN_OR_RETURN(std::vector<std::string> problems, db_->check_structure());
    if (db_->dialect().version < kFirstWithChoices) return problems;
    HONE_RETURN_IF_ERROR(db_->run(kBadChoices, {},
                                  [&](const Row& row) {
                                    problems.push_back(fmt::format(
                                        "the network {} has trial {} in the place of trial {}, "
                                        "which is of another kernel",
                                        row.text(0), row.integer(2), row.integer(1)));
                                    return ok_status();
                                  })
                             .status());
    return problems;
  }

 private:
  using Ids = std::map<std::string, int64_t>;

  // In the order of the keys, as in every other tuner: two of them never wait for each other.
  Result<Ids> intern_tasks(std::span<const trial::Record> batch) {
    std::map<std::string, const trial::Record*> tasks;
    for (const trial::Record& r : batch) {
      const trial::Record*& first = tasks.try_emplace(hash_hex(r.task), &r).first->second;
      if (first->task_text.empty()) first = &r;
    }
    Ids ids;
    for (const auto& [key, record] : tasks) {
      const Parameter parameters[] = {key, record->kernel_class, record->task_text};
      HONE_RETURN_IF_ERROR(db_->run(kAddTask, parameters).status());
      HONE_ASSIGN_OR_RETURN(ids[key], kept_id("task", key));
    }
    return ids;
  }

  Result<Ids> intern_devices(std::span<const trial::Record> batch) {
    Ids ids;
    for (const trial::Record& r : batch) ids[r.device] = 0;
    for (auto& [key, id] : ids) {
      const Parameter parameters[] = {key};
      HONE_RETURN_IF_ERROR(db_->run(kAddDevice, parameters).status());
      HONE_ASSIGN_OR_RETURN(id, kept_id("device", key));
    }
    return ids;
  }

  // Returns the id of a row that is not removed before the transaction ends.
  Result<int64_t> kept_id(const char* table, const std::string& key) {
    const Parameter parameters[] = {key};
    HONE_ASSIGN_OR_RETURN(
        const std::optional<int64_t> id,
        find_id(fmt::format("SELECT id FROM {} WHERE key = $1{}", table, db_->dialect().keep),
                parameters));
    if (id) return *id;
    return error(Code::kIo, "database {}: the {} {} was removed while it was stored, try again",
                 db_->name(), table, key);
  }

  // Returns the first column of the last row, if there is one.
  Result<std::optional<int64_t>> find_id(const std::string& sql,
                                         std::span<const Parameter> parameters) {
    std::optional<int64_t> id;
    HONE_RETURN_IF_ERROR(db_->run(sql, parameters,
                                  [&](const Row& row) {
                                    id = row.integer(0);
                                    return ok_status();
                                  })
                             .status());
    return id;
  }

  std::unique_ptr<Database> db_;
  std::string best_;       // the statement of best()
  bool verified_ = false;  // verify() was called
};

}  // namespace

std::unique_ptr<Store> make_sql_store(std::unique_ptr<Database> database) {
  return std::make_unique<SqlStore>(std::move(database));
}

}  // namespace hone::db
