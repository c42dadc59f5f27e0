// db/sqlite.h - SQLite's C interface as values: a connection and its prepared statements. Every
// failure becomes one message that names the file and says what to do.
#pragma once

#include <sqlite3.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "hone/base/status.h"

namespace hone::db {

// Returns whether the folder of a database does not exist, and which one that is.
[[nodiscard]] bool is_missing_folder(const std::string& path, std::string& folder);

class Connection {
 public:
  Connection(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  ~Connection() { sqlite3_close_v2(handle_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  [[nodiscard]] Status run(const char* sql);  // runs any number of statements and ignores results
  // Returns the first column of the first row.
  [[nodiscard]] Result<int64_t> integer(const char* sql);
  // Returns the last failure of this connection.
  [[nodiscard]] Status failure() const;
  // Remembers which file the path leads to now, for check_file().
  void remember_file();
  // Checks that the path still leads to the file that was remembered. If another file, or none, has
  // taken its place, later writes would be lost.
  [[nodiscard]] Status check_file() const;
  [[nodiscard]] sqlite3* handle() const { return handle_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  sqlite3* handle_;
  std::string path_;
  std::optional<std::pair<dev_t, ino_t>> file_;
};

// The largest number of bytes in a text, a list of times or a row.
inline constexpr int kMaxSqliteBytes = 16 << 20;

// Explains a result code of SQLite to the user; `detail` is SQLite's own message.
[[nodiscard]] Status sqlite_error(int extended_code, const std::string& path,
                                  std::string_view detail);

// A statement that is prepared once and used many times: bind, step until false, then reset (also
// after errors).
class Statement {
 public:
  [[nodiscard]] static Result<Statement> prepare(Connection& db, const std::string& sql);
  Statement& bind(int64_t value);
  Statement& bind(int value) { return bind(static_cast<int64_t>(value)); }
  Statement& bind(double value);
  Statement& bind(std::string_view text);            // copies the text
  Statement& bind(std::span<const double> numbers);  // a blob, which it copies
  [[nodiscard]] Result<bool> step();                 // true if there is a row
  void reset();
  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::string_view blob(int column) const;  // valid until the next step

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  Statement(Connection& db, sqlite3_stmt* s) : db_(&db), statement_(s) {}
  Connection* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
};

// A transaction that is rolled back unless it is committed. Beginning and committing fail if the
// file is not there any more.
class Transaction {
 public:
  [[nodiscard]] static Result<Transaction> begin(Connection& db);  // locks for writing
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  [[nodiscard]] Status commit();

 private:
  explicit Transaction(Connection& db) : db_(&db) {}
  Connection* db_;
};

}  // namespace hone::db
