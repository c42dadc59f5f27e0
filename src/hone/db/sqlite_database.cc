#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "hone/db/registry.h"
#include "hone/db/sql_database.h"
#include "hone/db/sqlite.h"
#include "hone/db/sqlite_open.h"
#include "hone/db/store_address.h"

namespace hone::db {
namespace {

static_assert(std::endian::native == std::endian::little,
              "times are stored as little-endian doubles");

class SqliteRow final : public Row {
 public:
  explicit SqliteRow(const Statement& s) : s_(s) {}
  [[nodiscard]] int64_t integer(int column) const override { return s_.integer(column); }
  [[nodiscard]] double real(int column) const override { return s_.real(column); }
  [[nodiscard]] std::string text(int column) const override { return s_.text(column); }
  [[nodiscard]] std::vector<double> reals(int column) const override {
    const std::string_view bytes = s_.blob(column);
    std::vector<double> values((bytes.size() + sizeof(double) - 1) / sizeof(double));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  const Statement& s_;
};

// This is when the file of a database is made, and whether its folder is made with it.
enum class Making : uint8_t { kDone, kLater, kLaterWithFolder };

class SqliteDatabase final : public Database {
 public:
  // A file that is made later is so when something is stored: until then `db` is an empty database
  // in its place.
  SqliteDatabase(const std::string& path, std::unique_ptr<Connection> db, int64_t version,
                 const StoreOptions& options, Making making)
      : Database(path, {.version = version, .by_time = " INDEXED BY trial_best"}),
        db_(std::move(db)),
        options_(options),
        making_(making) {}

  Result<int64_t> run(const std::string& sql, std::span<const Parameter> parameters,
                      const EachRow& each_row) override {
    // Another process may have made the file.
    std::error_code ignored;
    if (making_ != Making::kDone && std::filesystem::exists(name(), ignored))
      HONE_RETURN_IF_ERROR(make());
    if (parameters.empty()) {
      HONE_ASSIGN_OR_RETURN(Statement s, Statement::prepare(*db_, sql));
      return run(s, each_row);
    }
    auto place = statements_.find(sql);
    if (place == statements_.end()) {
      std::string numbered = sql;  // SQLite numbers $3 by where it occurs, and ?3 as it says
      std::replace(numbered.begin(), numbered.end(), '$', '?');
      HONE_ASSIGN_OR_RETURN(Statement made, Statement::prepare(*db_, numbered));
      place = statements_.emplace(sql, std::move(made)).first;
    }
    for (const Parameter& parameter : parameters)
      std::visit([&](const auto& value) { place->second.bind(value); }, parameter);
    return run(place->second, each_row);
  }

  Status transact(const std::function<Status()>& body) override {
    HONE_RETURN_IF_ERROR(make());
    HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
    HONE_RETURN_IF_ERROR(body());
    return transaction.commit();
  }

  Result<std::vector<std::string>> check_structure() override {
    std::vector<std::string> problems;
    HONE_RETURN_IF_ERROR(run("PRAGMA integrity_check(20)", {}, [&](const Row& row) {
                           if (row.text(0) != "ok") problems.push_back(row.text(0));
                           return ok_status();
                         }).status());
    HONE_RETURN_IF_ERROR(run("PRAGMA foreign_key_check", {}, [&](const Row& row) {
                           problems.push_back(fmt::format("{} {} names a {} that is not there",
                                                          row.text(0), row.integer(1),
                                                          row.text(2)));
                           return ok_status();
                         }).status());
    return problems;
  }

  // Some room is needed for this. While others read or write, and on a full disk, the space is kept
  // and used again for new trials.
  Status compact() override {
    sqlite3_busy_timeout(db_->handle(), 0);
    const Status compacted = db_->run("VACUUM");
    const int code = sqlite3_extended_errcode(db_->handle()) & 0xff;
    sqlite3_busy_timeout(db_->handle(), options_.busy_timeout_ms);
    return code == SQLITE_BUSY || code == SQLITE_FULL ? ok_status() : compacted;
  }

 private:
  Result<int64_t> run(Statement& s, const EachRow& each_row) {
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, s.step());
      if (!row) break;
      const Status read = each_row ? each_row(SqliteRow(s)) : ok_status();
      if (read.ok()) continue;
      s.reset();
      return read;
    }
    s.reset();
    return sqlite3_changes(db_->handle());
  }

  Status make() {
    if (making_ == Making::kDone) return ok_status();
    if (making_ == Making::kLaterWithFolder) HONE_RETURN_IF_ERROR(make_folder_of(name()));
    HONE_ASSIGN_OR_RETURN(auto made, open_sqlite(name(), options_));
    statements_.clear();
    db_ = std::move(made);
    making_ = Making::kDone;
    return ok_status();
  }

  std::unique_ptr<Connection> db_;
  std::map<std::string, Statement> statements_;  // after db_: statements go first
  StoreOptions options_;
  Making making_;
};

Result<std::unique_ptr<Database>> made_database(const std::string& path, Making making,
                                                const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(auto db, open_sqlite(making == Making::kDone ? path : kMemory, options));
  HONE_ASSIGN_OR_RETURN(const int64_t version, db->integer("PRAGMA user_version"));
  return std::unique_ptr<Database>(
      std::make_unique<SqliteDatabase>(path, std::move(db), version, options, making));
}

}  // namespace

Result<std::unique_ptr<Database>> open_sqlite_database(const std::string& path,
                                                       const StoreOptions& options) {
  return made_database(path, Making::kDone, options);
}

Result<std::unique_ptr<Database>> open_sqlite_database_later(const std::string& path,
                                                             bool makes_folder) {
  return made_database(path, makes_folder ? Making::kLaterWithFolder : Making::kLater, {});
}

}  // namespace hone::db
