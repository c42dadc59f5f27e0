// db/sqlite.h - SQLite's C interface as values: a connection and its prepared statements. Every
// failure becomes one message that names the file and what to do.
#pragma once

#include <sqlite3.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "hone/base/status.h"

namespace hone::db {

class Connection {
 public:
  Connection(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  ~Connection() { sqlite3_close_v2(handle_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  [[nodiscard]] Status run(const char* sql);  // any number of statements, results ignored
  [[nodiscard]] Result<int64_t> integer(const char* sql);  // the first column of the first row
  // The last failure of this connection.
  [[nodiscard]] Status failure() const;
  // Remembers which file the path leads to now, for check_file().
  void remember_file();
  // An error if another file, or none, has taken the place of the one that was remembered: what is
  // written from then on is lost.
  [[nodiscard]] Status check_file() const;
  [[nodiscard]] sqlite3* handle() const { return handle_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  sqlite3* handle_;
  std::string path_;
  std::optional<std::pair<dev_t, ino_t>> file_;
};

// The most bytes that a text, a list of times or a row of them may have.
inline constexpr int kMaxSqliteBytes = 16 << 20;

// What a result code of SQLite means for the user; `detail` is SQLite's own message.
[[nodiscard]] Status sqlite_error(int extended_code, const std::string& path,
                                  std::string_view detail);

// Prepared once, used many times: bind, step until false, then reset (also on errors).
class Statement {
 public:
  [[nodiscard]] static Result<Statement> prepare(Connection& db, const std::string& sql);
  Statement& bind(int64_t value);
  Statement& bind(int value) { return bind(static_cast<int64_t>(value)); }
  Statement& bind(double value);
  Statement& bind(std::string_view text);  // copied
  Statement& bind_blob(const void* data, size_t bytes);
  [[nodiscard]] Result<bool> step();  // true: a row
  [[nodiscard]] Status finish();      // steps to the end and resets
  void reset();
  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::string_view blob(int column) const;  // until the next step

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  Statement(Connection& db, sqlite3_stmt* s) : db_(&db), statement_(s) {}
  Connection* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
};

// Rolls back unless committed. Beginning and committing fail if the file is not there any more.
class Transaction {
 public:
  [[nodiscard]] static Result<Transaction> begin(Connection& db);  // a writer's
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  [[nodiscard]] Status commit();

 private:
  explicit Transaction(Connection& db) : db_(&db) {}
  Connection* db_;
};

}  // namespace hone::db
