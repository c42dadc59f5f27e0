// db/sql_database.h - a database as the store (db/sql_store.h) uses it: a file of SQLite or a
// server of PostgreSQL (internal to db). Both run the same statements and keep the same tables
// (docs/formats/db_format.md); a Dialect has the words that only one of them knows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hone/base/status.h"
#include "hone/db/store.h"

namespace hone::db {

// The value of $1, $2, ... in a statement.
using Parameter = std::variant<int64_t, double, std::string, std::span<const double>>;

// A row of an answer, valid until the next one.
class Row {
 public:
  virtual ~Row() = default;
  [[nodiscard]] virtual int64_t integer(int column) const = 0;
  [[nodiscard]] virtual double real(int column) const = 0;
  [[nodiscard]] virtual std::string text(int column) const = 0;
  [[nodiscard]] virtual std::vector<double> reals(int column) const = 0;  // a list of times
};

struct Dialect {
  // Version of the tables when they were opened, counted as SQLite's files are. PostgreSQL's first
  // tables are those of SQLite's version 3.
  int64_t version = 0;
  // This follows the table `trial` to make SQLite use the index of the fastest trials.
  std::string_view by_time;
  // These end a SELECT of one row that must not be removed, or not be changed, before the
  // transaction ends. Where a transaction locks the whole database, they are empty.
  std::string_view keep, lock;
};

class Database {
 public:
  using EachRow = std::function<Status(const Row&)>;

  Database(std::string name, Dialect dialect) : name_(std::move(name)), dialect_(dialect) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;
  // Runs one statement and calls each_row for the rows of its answer. Returns the number of rows
  // that it changed. A statement that has parameters is prepared once for all its uses, so
  // each_row must not run the same one.
  virtual Result<int64_t> run(const std::string& sql, std::span<const Parameter> parameters = {},
                              const EachRow& each_row = {}) = 0;
  // Calls body in a transaction, of which nothing stays unless it returns ok.
  virtual Status transact(const std::function<Status()>& body) = 0;
  // Returns what is wrong with the structure of everything stored, in words.
  virtual Result<std::vector<std::string>> check_structure() = 0;
  // Gives the space of what was deleted back to the file system, if nobody is in the way.
  virtual Status compact() = 0;

  [[nodiscard]] const std::string& name() const { return name_; }  // for messages
  [[nodiscard]] const Dialect& dialect() const { return dialect_; }

 private:
  std::string name_;
  Dialect dialect_;
};

[[nodiscard]] Result<std::unique_ptr<Database>> open_sqlite_database(const std::string& path,
                                                                     const StoreOptions& options);
// Opens a database whose file, which does not exist, is made when something is stored; and so is
// its folder, with `makes_folder`.
[[nodiscard]] Result<std::unique_ptr<Database>> open_sqlite_database_later(const std::string& path,
                                                                           bool makes_folder);
// Opens postgres://user:password@host:port/database. Missing tables are created if `options` allow
// it; max_bytes is ignored. Without libpq it returns an error.
[[nodiscard]] Result<std::unique_ptr<Database>> open_postgres_database(std::string_view uri,
                                                                       const StoreOptions& options);
// Opens what open_store() opens (db/registry.h).
[[nodiscard]] Result<std::unique_ptr<Database>> open_database(std::string_view where,
                                                              const StoreOptions& options);

}  // namespace hone::db
