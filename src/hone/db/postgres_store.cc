#include "hone/db/postgres_store.h"

#include <algorithm>
#include <limits>
#include <map>

#include "hone/base/hash.h"
#include "hone/db/postgres.h"
#include "hone/db/postgres_open.h"

namespace hone::db {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();  // for LIMIT

std::string accuracy_of_trial(int64_t version) {
  return version < 4 ? kAccuracyBeforeVersion6 : kAccuracy;
}

std::string columns_of(int64_t version) {
  return std::string(kColumnsOfVersion1) + kColumnsOfVersion2 +
         (version < 2 ? kBeforeVersion4 : kColumnsOfVersion4) + ", " + accuracy_of_trial(version);
}

Result<std::vector<trial::Record>> read_all(const PostgresRows& rows, const std::string& name,
                                            const Reading& reading = {}) {
  std::vector<trial::Record> records;
  for (int i = 0; i < rows.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(trial::Record record, read_record(rows.row(i), name, reading));
    records.push_back(std::move(record));
  }
  return records;
}

class PostgresStore final : public Store {
 public:
  PostgresStore(std::unique_ptr<PostgresConnection> db, int version)
      : db_(std::move(db)), version_(version) {}

  Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) override {
    for (const trial::Record& r : batch) HONE_RETURN_IF_ERROR(check(r));
    std::vector<int64_t> ids;
    if (batch.empty()) return ids;
    HONE_ASSIGN_OR_RETURN(PostgresTransaction transaction, PostgresTransaction::begin(*db_));
    HONE_ASSIGN_OR_RETURN(const Ids tasks, intern_tasks(batch));
    HONE_ASSIGN_OR_RETURN(const Ids devices, intern_devices(batch));
    for (const trial::Record& r : batch) {
      HONE_ASSIGN_OR_RETURN(const int64_t id,
                            insert(r, tasks.at(hash_hex(r.task)), devices.at(r.device)));
      ids.push_back(id);
    }
    HONE_RETURN_IF_ERROR(transaction.commit());
    return ids;
  }

  Result<std::vector<trial::Record>> best(const BestQuery& q) override {
    const auto [strictest, least_strict] = q.accuracies();
    const Parameter parameters[] = {hash_hex(q.task), q.device,        int64_t{q.threads},
                                    strictest,        least_strict,    q.version,
                                    q.algorithm,      int64_t{q.limit}};
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        db_->run("SELECT " + columns_of(version_) + kFromTrial + "WHERE trial.id IN (" +
                     best_ids("trial", accuracy_of_trial(version_)) +
                     ") ORDER BY trial.centre, trial.id LIMIT $8",
                 parameters));
    return read_all(rows, db_->name());
  }

  Result<std::vector<trial::Record>> query(const Filter& f) override {
    Conditions conditions = conditions_of(f, kAll);
    if (f.fastest_only) {
      conditions.where.insert(
          std::string_view("WHERE ").size(),
          fmt::format("trial.id IN (SELECT DISTINCT ON (task, device, threads) id FROM (SELECT "
                      "DISTINCT ON (task, device, threads, {0}) id, task, device, threads, centre "
                      "FROM trial WHERE verified = 1 AND {0} < {1} ORDER BY task, device, threads, "
                      "{0}, centre, id) AS of_accuracy ORDER BY task, device, threads, centre, id) "
                      "AND ",
                      accuracy_of_trial(version_), static_cast<int>(trial::Accuracy::kFast)));
    }
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        db_->run("SELECT " + columns_of(version_) + (f.with_task_text ? ", task.text" : "") +
                     kFromTrial + conditions.where,
                 conditions.parameters));
    return read_all(rows, db_->name(), {f.with_task_text, verified_});
  }

  Status set_verified(int64_t id, trial::Outcome found, std::string_view message) override {
    const Parameter parameters[] = {id, std::string(trial::outcome_name(found)),
                                    std::string(message)};
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        found == trial::Outcome::kOk
            ? db_->run("UPDATE trial SET verified = 1 WHERE id = $1 AND outcome = 'ok'",
                       std::span(parameters, 1))
            : db_->run("UPDATE trial SET verified = 0, crowned = 0, outcome = $2, message = $3 "
                       "WHERE id = $1",
                       parameters));
    if (rows.changed() == 1) return ok_status();
    return error(Code::kNotFound, "database {} has no successful trial {}", db_->name(), id);
  }

  Status choose(uint64_t network, std::span<const Choice> choices) override {
    HONE_ASSIGN_OR_RETURN(PostgresTransaction transaction, PostgresTransaction::begin(*db_));
    for (const Choice& c : choices) {
      const Parameter parameters[] = {hash_hex(network), c.best, c.chosen};
      HONE_RETURN_IF_ERROR(db_->run(kForgetChoice, parameters).status());
      if (c.chosen != c.best) HONE_RETURN_IF_ERROR(db_->run(kAddChoice, parameters).status());
    }
    return transaction.commit();
  }

  Result<std::vector<Chosen>> chosen(uint64_t network) override {
    std::vector<Chosen> result;
    if (version_ < kFirstPostgresWithChoices) return result;
    const Parameter parameters[] = {hash_hex(network)};
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        db_->run("SELECT " + columns_of(version_) + ", best.steps" + kFromTrial + kChosen,
                 parameters));
    for (int i = 0; i < rows.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(trial::Record record, read_record(rows.row(i), db_->name()));
      result.push_back({rows.row(i).text(kNumColumns), std::move(record)});
    }
    return result;
  }

  Status remove(std::span<const int64_t> ids) override {
    const Parameter list[] = {list_of(ids)};
    HONE_ASSIGN_OR_RETURN(PostgresTransaction transaction, PostgresTransaction::begin(*db_));
    HONE_RETURN_IF_ERROR(db_->run("DELETE FROM trial WHERE id = ANY($1::bigint[])", list).status());
    // A tuner that adds a trial of such a task right now holds a lock on the task's row.
    HONE_RETURN_IF_ERROR(db_->run("DELETE FROM task WHERE NOT EXISTS (SELECT FROM trial WHERE "
                                  "trial.task = task.id)")
                             .status());
    return transaction.commit();  // the server's autovacuum gives the room back
  }

  Result<std::vector<std::string>> verify() override {
    verified_ = true;
    // The server keeps pages and keys whole; what is left are records that no hone could read.
    std::vector<std::string> problems;
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        db_->run("SELECT id FROM trial WHERE outcome = 'ok' AND (cardinality(times) = 0 OR NOT "
                 "centre > 0) LIMIT 20"));
    for (int i = 0; i < rows.size(); ++i)
      problems.push_back(fmt::format("trial {} is ok but has no time", rows.row(i).integer(0)));
    if (version_ < kFirstPostgresWithChoices) return problems;
    HONE_ASSIGN_OR_RETURN(const PostgresRows choices, db_->run(kBadChoices));
    for (int i = 0; i < choices.size(); ++i) {
      const PostgresRows::Row row = choices.row(i);
      problems.push_back(bad_choice(row.text(0), row.integer(1), row.integer(2)));
    }
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
      HONE_RETURN_IF_ERROR(
          db_->run("INSERT INTO task (key, kernel_class, text) VALUES ($1, $2, $3) ON CONFLICT "
                   "(key) DO UPDATE SET text = excluded.text WHERE task.text = '' AND "
                   "excluded.text <> ''",
                   parameters)
              .status());
      HONE_ASSIGN_OR_RETURN(ids[key], lock_id("task", key));
    }
    return ids;
  }

  Result<Ids> intern_devices(std::span<const trial::Record> batch) {
    Ids ids;
    for (const trial::Record& r : batch) ids[r.device] = 0;
    for (auto& [key, id] : ids) {
      const Parameter parameters[] = {key};
      HONE_RETURN_IF_ERROR(
          db_->run("INSERT INTO device (key) VALUES ($1) ON CONFLICT (key) DO NOTHING", parameters)
              .status());
      HONE_ASSIGN_OR_RETURN(id, lock_id("device", key));
    }
    return ids;
  }

  // The lock keeps the row from being removed before the transaction ends.
  Result<int64_t> lock_id(const char* table, const std::string& key) {
    const Parameter parameters[] = {key};
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        db_->run(fmt::format("SELECT id FROM {} WHERE key = $1 FOR KEY SHARE", table), parameters));
    if (rows.size() != 1) {
      return error(Code::kIo, "database {}: the {} {} was removed while it was stored, try again",
                   db_->name(), table, key);
    }
    return rows.row(0).integer(0);
  }

  Result<int64_t> insert(const trial::Record& r, int64_t task, int64_t device) {
    const trial::CountedBounds bounds = r.bounds.value_or(trial::CountedBounds());
    const Parameter parameters[] = {task,
                                    device,
                                    int64_t{r.threads},
                                    r.version,
                                    r.algorithm,
                                    r.steps,
                                    r.decisions,
                                    std::string(trial::outcome_name(r.outcome)),
                                    r.message,
                                    list_of(r.times),
                                    real(r.centre),
                                    real(r.low),
                                    real(r.high),
                                    int64_t{r.verified},
                                    hash_hex(r.seed),
                                    r.unix_time,
                                    real(r.host_load),
                                    r.model,
                                    real(r.drift),
                                    int64_t{r.crowned},
                                    list_of(r.duel),
                                    real(r.others),
                                    real(r.steal),
                                    real(bounds.scores.memory),
                                    real(bounds.scores.core),
                                    bounds.source,
                                    static_cast<int64_t>(r.accuracy)};
    HONE_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        db_->run(
            "INSERT INTO trial (task, device, threads, version, algorithm, steps, decisions, "
            "outcome, message, times, centre, low, high, verified, seed, unix_time, host_load, "
            "model, drift, crowned, duel, others, steal, memory_bound, core_bound, bounds_source, "
            "accuracy) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "
            "$18, $19, $20, $21, $22, $23, $24, $25, $26, $27) RETURNING id",
            parameters));
    return rows.row(0).integer(0);
  }

  std::unique_ptr<PostgresConnection> db_;
  int version_;            // version of the tables when they were opened
  bool verified_ = false;  // verify() was called
};

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(std::string_view uri,
                                                   const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> db, open_postgres(uri, options));
  HONE_ASSIGN_OR_RETURN(const int version, postgres_version(*db));
  return std::unique_ptr<Store>(std::make_unique<PostgresStore>(std::move(db), version));
}

}  // namespace hone::db
