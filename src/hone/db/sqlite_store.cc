#include "hone/db/sqlite_store.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "hone/base/hash.h"
#include "hone/db/sqlite.h"
#include "hone/db/sqlite_open.h"

namespace hone::db {
namespace {

static_assert(std::endian::native == std::endian::little,
              "times are stored as little-endian doubles");

constexpr const char* kColumns =
    "trial.id, task.key, task.kernel_class, device.key, trial.threads, trial.version, trial.algorithm, "
    "trial.steps, trial.decisions, trial.outcome, trial.message, trial.times, trial.centre, trial.low, "
    "trial.high, trial.verified, trial.seed, trial.unix_time, trial.host_load, trial.model";
constexpr const char* kColumnsOfVersion2 =
    ", trial.drift, trial.crowned, trial.duel, trial.others, trial.steal";
constexpr const char* kBeforeVersion2 = ", 1.0, 0, x'', 0.0, 0.0";  // a file that is only read
constexpr int kNumColumns = 25;

Result<std::string> columns_of(Connection& db) {
  HONE_ASSIGN_OR_RETURN(const int64_t version, db.integer("PRAGMA user_version"));
  return std::string(kColumns) + (version < 2 ? kBeforeVersion2 : kColumnsOfVersion2);
}

// The first trial of each (task, device, threads) in the index trial_best, which is in order of
// time: one step through the index per group, however many trials there are.
constexpr const char* kFastest =
    "WITH RECURSIVE fastest(id) AS (SELECT * FROM (SELECT id FROM trial INDEXED BY trial_best WHERE "
    "verified = 1 ORDER BY task, device, threads, centre LIMIT 1) UNION ALL "
    "SELECT (SELECT next.id FROM trial AS next INDEXED BY trial_best WHERE next.verified = 1 AND "
    "(next.task, next.device, next.threads) > (last.task, last.device, last.threads) "
    "ORDER BY next.task, next.device, next.threads, next.centre LIMIT 1) "
    "FROM fastest JOIN trial AS last ON last.id = fastest.id) ";

Status bad_field(const std::string& path, int64_t id, const char* field, std::string_view found) {
  return error(Code::kIo,
               "database {} is corrupt (trial {} has {} '{}'); set it aside and use another --db",
               path, id, field, found);
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || end.ec != std::errc() || end.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::vector<double> doubles_of(std::string_view bytes) {
  std::vector<double> values((bytes.size() + sizeof(double) - 1) / sizeof(double));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A row of kColumns, and the task's text if `with_text`.
Result<Record> read_record(const Statement& s, const std::string& path, bool with_text) {
  Record r;
  r.id = s.integer(0);
  const std::string task = s.text(1), outcome = s.text(9), seed = s.text(16);
  const auto key = parse_hex(task);
  if (!key) return bad_field(path, r.id, "task key", task);
  const auto parsed = measure::parse_outcome(outcome);
  if (!parsed) return bad_field(path, r.id, "outcome", outcome);
  const auto seed_value = parse_hex(seed);
  if (!seed_value) return bad_field(path, r.id, "seed", seed);
  r.task = *key, r.outcome = *parsed, r.seed = *seed_value;
  r.kernel_class = s.text(2);
  r.device = s.text(3);
  r.threads = static_cast<int>(s.integer(4));
  r.version = s.text(5), r.algorithm = s.text(6), r.steps = s.text(7), r.decisions = s.text(8);
  r.message = s.text(10);
  r.times = doubles_of(s.blob(11));
  r.centre = s.real(12), r.low = s.real(13), r.high = s.real(14);
  r.verified = s.integer(15) != 0;
  r.unix_time = s.integer(17);
  r.host_load = s.real(18);
  r.model = s.text(19);
  r.drift = s.real(20);
  r.crowned = s.integer(21) != 0;
  r.duel = doubles_of(s.blob(22));
  r.others = s.real(23), r.steal = s.real(24);
  if (with_text) r.task_text = s.text(kNumColumns);
  return r;
}

Result<std::vector<Record>> read_all(Statement& s, const std::string& path, bool with_text) {
  std::vector<Record> result;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, s.step());
    if (!row) break;
    auto record = read_record(s, path, with_text);
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

Result<Statements> prepare_all(Connection& db) {
  HONE_ASSIGN_OR_RETURN(const int64_t version, db.integer("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(const std::string columns, columns_of(db));
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
          version < 2 ? "SELECT 1" :  // such a file is open for reading only
              "INSERT INTO trial (task, device, threads, version, algorithm, steps, decisions, outcome, message, "
              "times, centre, low, high, verified, seed, unix_time, host_load, model, drift, crowned, duel, "
              "others, steal) "
              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  // The partial index trial_best serves this in order of centre, so a limit reads only that many
  // rows. Equal times: the older one.
  HONE_ASSIGN_OR_RETURN(
      Statement best,
      Statement::prepare(
          db,
          "SELECT " + columns +
              " FROM trial INDEXED BY trial_best JOIN task ON task.id = trial.task "
              "JOIN device ON device.id = trial.device WHERE trial.verified = 1 AND trial.task = "
              "(SELECT id FROM task WHERE key = ?1) AND trial.device = (SELECT id FROM device WHERE key = ?2) "
              "AND trial.threads = ?3 AND (?4 = '' OR trial.version = ?4) AND (?5 = '' OR trial.algorithm = ?5) "
              "ORDER BY trial.centre, trial.id LIMIT ?6"));
  HONE_ASSIGN_OR_RETURN(
      Statement set_correct,
      Statement::prepare(db, "UPDATE trial SET verified = 1 WHERE id = ? AND outcome = 'ok'"));
  HONE_ASSIGN_OR_RETURN(
      Statement set_wrong,
      Statement::prepare(
          db,
          version < 2
              ? "SELECT 1"
              : "UPDATE trial SET verified = 0, crowned = 0, outcome = 'wrong answer', message = ? WHERE id = ?"));
  return Statements{std::move(add_task),    std::move(find_task), std::move(add_device),
                    std::move(find_device), std::move(add_trial), std::move(best),
                    std::move(set_correct), std::move(set_wrong)};
}

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<Connection> db, Statements s)
      : db_(std::move(db)), s_(std::move(s)) {}

  Result<std::vector<int64_t>> add(std::span<const Record> batch) override {
    for (const Record& r : batch) HONE_RETURN_IF_ERROR(check(r));
    std::vector<int64_t> ids;
    if (batch.empty()) return ids;
    HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
    for (const Record& r : batch) {
      HONE_ASSIGN_OR_RETURN(const int64_t id, insert(r));
      ids.push_back(id);
    }
    HONE_RETURN_IF_ERROR(transaction.commit());
    return ids;
  }

  Result<std::vector<Record>> best(const BestQuery& q) override {
    s_.best.bind(hash_hex(q.task))
        .bind(q.device)
        .bind(q.threads)
        .bind(q.version)
        .bind(q.algorithm)
        .bind(q.limit);
    return read_all(s_.best, db_->path(), false);
  }

  Result<std::vector<Record>> query(const Filter& f) override {
    HONE_ASSIGN_OR_RETURN(const std::string columns, columns_of(*db_));
    std::string sql =
        std::string(f.fastest_only ? kFastest : "") + "SELECT " + columns +
        (f.with_task_text ? ", task.text" : "") +
        " FROM trial JOIN task ON task.id = trial.task JOIN device ON device.id = trial.device "
        "WHERE trial.id > ?";
    if (f.fastest_only) sql += " AND trial.id IN (SELECT id FROM fastest)";
    if (f.task) sql += " AND trial.task = (SELECT id FROM task WHERE key = ?)";
    if (f.kernel_class) sql += " AND task.kernel_class = ?";
    if (f.device) sql += " AND device.key = ?";
    if (f.version) sql += " AND trial.version = ?";
    if (f.model) sql += " AND trial.model = ?";
    if (f.threads) sql += " AND trial.threads = ?";
    if (f.outcome) sql += " AND trial.outcome = ?";
    if (f.verified_only) sql += " AND trial.verified = 1";
    sql += " ORDER BY trial.id LIMIT ?";
    HONE_ASSIGN_OR_RETURN(Statement s, Statement::prepare(*db_, sql));
    s.bind(f.after_id);
    if (f.task) s.bind(hash_hex(*f.task));
    if (f.kernel_class) s.bind(*f.kernel_class);
    if (f.device) s.bind(*f.device);
    if (f.version) s.bind(*f.version);
    if (f.model) s.bind(*f.model);
    if (f.threads) s.bind(*f.threads);
    if (f.outcome) s.bind(measure::outcome_name(*f.outcome));
    s.bind(f.limit);
    return read_all(s, db_->path(), f.with_task_text);
  }

  Status set_verified(int64_t id, bool correct, std::string_view message) override {
    Statement& s = correct ? s_.set_correct : s_.set_wrong;
    if (!correct) s.bind(message);
    s.bind(id);
    HONE_RETURN_IF_ERROR(s.finish());
    if (sqlite3_changes(db_->handle()) == 1) return ok_status();
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

  Result<int64_t> insert(const Record& r) {
    const std::string key = hash_hex(r.task);
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
        .bind(measure::outcome_name(r.outcome))
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
        .bind(r.steal);
    HONE_RETURN_IF_ERROR(s_.add_trial.finish());
    return sqlite3_last_insert_rowid(db_->handle());
  }

  std::unique_ptr<Connection> db_;
  Statements s_;  // after db_: statements go first
};

}  // namespace

Status check(const Record& r) {
  if (r.device.empty()) return invalid("a record needs a device key");
  if (r.threads < 1) return invalid("a record has {} threads, expected at least 1", r.threads);
  const bool ok = r.outcome == measure::Outcome::kOk;
  if (ok && r.times.empty()) return invalid("a successful record needs times");
  if (ok && !(r.centre > 0 && std::isfinite(r.centre))) {
    return invalid("a successful record has the centre {}, expected a positive time", r.centre);
  }
  if (!std::isfinite(r.low) || !std::isfinite(r.high) || !std::isfinite(r.host_load) ||
      !std::isfinite(r.centre) || !std::isfinite(r.others) || !std::isfinite(r.steal)) {
    return invalid("a record has a number that is not finite");
  }
  for (const double t : r.times) {
    if (!(t > 0 && std::isfinite(t)))
      return invalid("a record has the time {}, expected a positive one", t);
  }
  for (const double t : r.duel) {
    if (!(t > 0 && std::isfinite(t)))
      return invalid("a record's duel has the time {}, expected a positive one", t);
  }
  if (r.duel.size() % 2 != 0)
    return invalid("a record's duel has {} times, expected pairs", r.duel.size());
  if (!(r.drift > 0 && std::isfinite(r.drift)))
    return invalid("a record has the drift {}, expected a positive number", r.drift);
  if (r.crowned && !ok)
    return invalid("a crowned record ended as '{}', expected ok", measure::outcome_name(r.outcome));
  if (r.verified && !ok)
    return invalid("a verified record ended as '{}', expected ok",
                   measure::outcome_name(r.outcome));
  return ok_status();
}

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(auto db, open_sqlite(path, options));
  HONE_ASSIGN_OR_RETURN(Statements statements, prepare_all(*db));
  return std::unique_ptr<Store>(
      std::make_unique<SqliteStore>(std::move(db), std::move(statements)));
}

}  // namespace hone::db
