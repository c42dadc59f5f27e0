#include "hone/db/sqlite_store.h"

#include <bit>
#include <cstring>

#include "hone/base/hash.h"
#include "hone/db/row.h"
#include "hone/db/sqlite.h"
#include "hone/db/sqlite_open.h"

namespace hone::db {
namespace {

static_assert(std::endian::native == std::endian::little,
              "times are stored as little-endian doubles");

// A file of version 1 that is only read has no columns of version 2.
constexpr const char* kBeforeVersion2 = ", 1.0, 0, x'', 0.0, 0.0";

std::string accuracy_of_trial(int64_t version) {
  return version < 6 ? kAccuracyBeforeVersion6 : kAccuracy;
}

std::string columns_of(int64_t version) {
  return std::string(kColumnsOfVersion1) + (version < 2 ? kBeforeVersion2 : kColumnsOfVersion2) +
         (version < 4 ? kBeforeVersion4 : kColumnsOfVersion4) + ", " + accuracy_of_trial(version);
}

// The fastest of each task, device and number of threads, of those that the usual accuracy allows.
// The first one of each accuracy in the index trial_best, which is in order of time: one step
// through the index per group, however many trials there are. A file that knows no accuracies is
// read as a whole.
std::string with_fastest(int64_t version) {
  const std::string choose = fmt::format(
      "fastest(id) AS (SELECT id FROM (SELECT trial.id, row_number() OVER (PARTITION BY task, "
      "device, threads ORDER BY centre, trial.id) AS place FROM {} WHERE verified = 1 AND {} < {}) "
      "WHERE place = 1) ",
      version < 6 ? "trial INDEXED BY trial_best" : "first JOIN trial ON trial.id = first.id",
      accuracy_of_trial(version), static_cast<int>(trial::Accuracy::kFast));
  if (version < 6) return "WITH " + choose;
  return "WITH RECURSIVE first(id) AS (SELECT * FROM (SELECT id FROM trial INDEXED BY trial_best "
         "WHERE verified = 1 ORDER BY task, device, threads, accuracy, centre LIMIT 1) UNION ALL "
         "SELECT (SELECT next.id FROM trial AS next INDEXED BY trial_best WHERE next.verified = 1 "
         "AND (next.task, next.device, next.threads, next.accuracy) > (last.task, last.device, "
         "last.threads, last.accuracy) ORDER BY next.task, next.device, next.threads, "
         "next.accuracy, next.centre LIMIT 1) FROM first JOIN trial AS last ON last.id = "
         "first.id), " +
         choose;
}

// A statement's row as db/row.h reads it.
struct SqliteRow {
  const Statement& s;
  [[nodiscard]] int64_t integer(int column) const { return s.integer(column); }
  [[nodiscard]] double real(int column) const { return s.real(column); }
  [[nodiscard]] std::string text(int column) const { return s.text(column); }
  [[nodiscard]] std::vector<double> reals(int column) const {
    const std::string_view bytes = s.blob(column);
    std::vector<double> values((bytes.size() + sizeof(double) - 1) / sizeof(double));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

Result<std::vector<trial::Record>> read_all(Statement& s, const std::string& path,
                                            const Reading& reading = {}) {
  std::vector<trial::Record> result;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, s.step());
    if (!row) break;
    auto record = read_record(SqliteRow{s}, path, reading);
    if (!record.ok()) {
      s.reset();
      return record.status();
    }
    result.push_back(*std::move(record));
  }
  s.reset();
  return result;
}

struct Statements {
  Statement add_task, find_task, add_device, find_device, add_trial, best, set_correct, set_wrong;
};

Result<Statements> prepare_all(Connection& db, int64_t version) {
  HONE_ASSIGN_OR_RETURN(
      Statement add_task,
      Statement::prepare(
          db,
          "INSERT INTO task (key, kernel_class, text) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "
          "SET text = excluded.text WHERE text = '' AND excluded.text <> ''"));
  HONE_ASSIGN_OR_RETURN(Statement find_task,
                        Statement::prepare(db, "SELECT id FROM task WHERE key = ?"));
  HONE_ASSIGN_OR_RETURN(
      Statement add_device,
      Statement::prepare(db, "INSERT INTO device (key) VALUES (?) ON CONFLICT (key) DO NOTHING"));
  HONE_ASSIGN_OR_RETURN(Statement find_device,
                        Statement::prepare(db, "SELECT id FROM device WHERE key = ?"));
  HONE_ASSIGN_OR_RETURN(
      Statement add_trial,
      Statement::prepare(
          db,
          version < 6 ? "SELECT 1" :  // such a file is open for reading only
              "INSERT INTO trial (task, device, threads, version, algorithm, steps, decisions, outcome, message, "
              "times, centre, low, high, verified, seed, unix_time, host_load, model, drift, crowned, duel, "
              "others, steal, memory_bound, core_bound, bounds_source, accuracy) "
              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  HONE_ASSIGN_OR_RETURN(
      Statement best,
      Statement::prepare(db,
                         "SELECT " + columns_of(version) + kFromTrial + "WHERE trial.id IN (" +
                             best_ids("trial INDEXED BY trial_best", accuracy_of_trial(version)) +
                             ") ORDER BY trial.centre, trial.id LIMIT $8"));
  HONE_ASSIGN_OR_RETURN(
      Statement set_correct,
      Statement::prepare(db, "UPDATE trial SET verified = 1 WHERE id = ? AND outcome = 'ok'"));
  HONE_ASSIGN_OR_RETURN(
      Statement set_wrong,
      Statement::prepare(
          db,
          version < 2
              ? "SELECT 1"
              : "UPDATE trial SET verified = 0, crowned = 0, outcome = ?, message = ? WHERE id = ?"));
  return Statements{std::move(add_task),    std::move(find_task), std::move(add_device),
                    std::move(find_device), std::move(add_trial), std::move(best),
                    std::move(set_correct), std::move(set_wrong)};
}

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<Connection> db, Statements s, int64_t version, int busy_timeout_ms)
      : db_(std::move(db)),
        s_(std::move(s)),
        version_(version),
        busy_timeout_ms_(busy_timeout_ms) {}

  Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) override {
    for (const trial::Record& r : batch) HONE_RETURN_IF_ERROR(check(r));
    std::vector<int64_t> ids;
    if (batch.empty()) return ids;
    HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
    for (const trial::Record& r : batch) {
      HONE_ASSIGN_OR_RETURN(const int64_t id, insert(r));
      ids.push_back(id);
    }
    HONE_RETURN_IF_ERROR(transaction.commit());
    return ids;
  }

  Result<std::vector<trial::Record>> best(const BestQuery& q) override {
    const auto [strictest, least_strict] = q.accuracies();
    s_.best.bind(hash_hex(q.task))
        .bind(q.device)
        .bind(q.threads)
        .bind(strictest)
        .bind(least_strict)
        .bind(q.version)
        .bind(q.algorithm)
        .bind(q.limit);
    return read_all(s_.best, db_->path());
  }

  Result<std::vector<trial::Record>> query(const Filter& f) override {
    Conditions conditions = conditions_of(f, -1);
    if (f.fastest_only) {
      conditions.where.insert(std::string_view("WHERE ").size(),
                              "trial.id IN (SELECT id FROM fastest) AND ");
    }
    HONE_ASSIGN_OR_RETURN(Statement s,
                          Statement::prepare(*db_, (f.fastest_only ? with_fastest(version_) : "") +
                                                       "SELECT " + columns_of(version_) +
                                                       (f.with_task_text ? ", task.text" : "") +
                                                       kFromTrial + conditions.where));
    for (const Parameter& parameter : conditions.parameters)
      parameter.is_integer ? s.bind(parameter.integer) : s.bind(parameter.text);
    return read_all(s, db_->path(), {f.with_task_text, verified_});
  }

  Status choose(uint64_t network, std::span<const Choice> choices) override {
    HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
    HONE_ASSIGN_OR_RETURN(Statement forget, Statement::prepare(*db_, kForgetChoice));
    HONE_ASSIGN_OR_RETURN(Statement add, Statement::prepare(*db_, kAddChoice));
    const std::string key = hash_hex(network);
    for (const Choice& c : choices) {
      HONE_RETURN_IF_ERROR(forget.bind(key).bind(c.best).bind(c.chosen).finish());
      if (c.chosen != c.best)
        HONE_RETURN_IF_ERROR(add.bind(key).bind(c.best).bind(c.chosen).finish());
    }
    return transaction.commit();
  }

  Result<std::vector<Chosen>> chosen(uint64_t network) override {
    std::vector<Chosen> result;
    if (version_ < kFirstWithChoices) return result;
    HONE_ASSIGN_OR_RETURN(
        Statement s, Statement::prepare(*db_, "SELECT " + columns_of(version_) + ", best.steps" +
                                                  kFromTrial + kChosen));
    s.bind(hash_hex(network));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, s.step());
      if (!row) return result;
      HONE_ASSIGN_OR_RETURN(trial::Record record, read_record(SqliteRow{s}, db_->path()));
      result.push_back({s.text(kNumColumns), std::move(record)});
    }
  }

  Status remove(std::span<const int64_t> ids) override {
    {
      HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
      HONE_ASSIGN_OR_RETURN(Statement s,
                            Statement::prepare(*db_, "DELETE FROM trial WHERE id = ?"));
      for (const int64_t id : ids) HONE_RETURN_IF_ERROR(s.bind(id).finish());
      HONE_RETURN_IF_ERROR(db_->run("DELETE FROM task WHERE id NOT IN (SELECT task FROM trial)"));
      HONE_RETURN_IF_ERROR(transaction.commit());
    }
    // Gives the room back, for which some is needed. Not while others read or write, nor on a full
    // disk: then it is used again for new trials.
    sqlite3_busy_timeout(db_->handle(), 0);
    const Status compacted = db_->run("VACUUM");
    const int code = sqlite3_extended_errcode(db_->handle()) & 0xff;
    sqlite3_busy_timeout(db_->handle(), busy_timeout_ms_);
    return code == SQLITE_BUSY || code == SQLITE_FULL ? ok_status() : compacted;
  }

  Result<std::vector<std::string>> verify() override {
    verified_ = true;
    std::vector<std::string> problems;
    HONE_ASSIGN_OR_RETURN(Statement pages, Statement::prepare(*db_, "PRAGMA integrity_check(20)"));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, pages.step());
      if (!row) break;
      if (pages.text(0) != "ok") problems.push_back(pages.text(0));
    }
    HONE_ASSIGN_OR_RETURN(Statement keys, Statement::prepare(*db_, "PRAGMA foreign_key_check"));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, keys.step());
      if (!row) break;
      problems.push_back(fmt::format("{} {} names a {} that is not there", keys.text(0),
                                     keys.integer(1), keys.text(2)));
    }
    if (version_ < kFirstWithChoices) return problems;
    HONE_ASSIGN_OR_RETURN(Statement choices, Statement::prepare(*db_, kBadChoices));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, choices.step());
      if (!row) return problems;
      problems.push_back(bad_choice(choices.text(0), choices.integer(1), choices.integer(2)));
    }
  }

  Status set_verified(int64_t id, trial::Outcome found, std::string_view message) override {
    const bool correct = found == trial::Outcome::kOk;
    Statement& s = correct ? s_.set_correct : s_.set_wrong;
    if (!correct) s.bind(trial::outcome_name(found)).bind(message);
    s.bind(id);
    HONE_RETURN_IF_ERROR(s.finish());
    if (sqlite3_changes(db_->handle()) == 1) return db_->check_file();
    return error(Code::kNotFound, "database {} has no successful trial {}", db_->path(), id);
  }

 private:
  Result<int64_t> intern(Statement& find, std::string_view key) {
    find.bind(key);
    HONE_ASSIGN_OR_RETURN(const bool row, find.step());
    HONE_ASSERT(row, "a key that was just added is there");
    const int64_t id = find.integer(0);
    find.reset();
    return id;
  }

  Result<int64_t> insert(const trial::Record& r) {
    const std::string key = hash_hex(r.task);
    const trial::CountedBounds bounds = r.bounds.value_or(trial::CountedBounds());
    s_.add_task.bind(key).bind(r.kernel_class).bind(r.task_text);
    HONE_RETURN_IF_ERROR(s_.add_task.finish());
    s_.add_device.bind(r.device);
    HONE_RETURN_IF_ERROR(s_.add_device.finish());
    HONE_ASSIGN_OR_RETURN(const int64_t task, intern(s_.find_task, key));
    HONE_ASSIGN_OR_RETURN(const int64_t device, intern(s_.find_device, r.device));
    s_.add_trial.bind(task)
        .bind(device)
        .bind(r.threads)
        .bind(r.version)
        .bind(r.algorithm)
        .bind(r.steps)
        .bind(r.decisions)
        .bind(trial::outcome_name(r.outcome))
        .bind(r.message)
        .bind_blob(r.times.data(), r.times.size() * sizeof(double))
        .bind(r.centre)
        .bind(r.low)
        .bind(r.high)
        .bind(r.verified ? 1 : 0)
        .bind(hash_hex(r.seed))
        .bind(r.unix_time)
        .bind(r.host_load)
        .bind(r.model)
        .bind(r.drift)
        .bind(r.crowned ? 1 : 0)
        .bind_blob(r.duel.data(), r.duel.size() * sizeof(double))
        .bind(r.others)
        .bind(r.steal)
        .bind(bounds.scores.memory)
        .bind(bounds.scores.core)
        .bind(bounds.source)
        .bind(static_cast<int64_t>(r.accuracy));
    HONE_RETURN_IF_ERROR(s_.add_trial.finish());
    return sqlite3_last_insert_rowid(db_->handle());
  }

  std::unique_ptr<Connection> db_;
  Statements s_;     // after db_: statements go first
  int64_t version_;  // version of the format when the file was opened
  int busy_timeout_ms_;
  bool verified_ = false;  // verify() was called
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(auto db, open_sqlite(path, options));
  HONE_ASSIGN_OR_RETURN(const int64_t version, db->integer("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(Statements statements, prepare_all(*db, version));
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(db), std::move(statements),
                                                              version, options.busy_timeout_ms));
}

}  // namespace hone::db
