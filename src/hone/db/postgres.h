// db/postgres.h - libpq as values: a connection and the rows of a statement's answer, everything as
// text. Every failure becomes one message that names the server and the database, never a password.
#pragma once

#include <fmt/ranges.h>
#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/db/row.h"

namespace hone::db {

class PostgresRows {
 public:
  explicit PostgresRows(PGresult* result) : result_(result) {}
  [[nodiscard]] const PGresult* result() const { return result_.get(); }
  [[nodiscard]] bool succeeded() const;
  [[nodiscard]] int size() const { return PQntuples(result_.get()); }
  [[nodiscard]] int64_t changed() const;  // rows
  // A row as db/row.h reads it.
  struct Row {
    const PGresult* result;
    int row;
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const;
    [[nodiscard]] std::vector<double> reals(int column) const;
  };
  [[nodiscard]] Row row(int index) const { return {result_.get(), index}; }

 private:
  struct Clear {
    void operator()(PGresult* r) const { PQclear(r); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

class PostgresConnection {
 public:
  // `uri`: postgres://user:password@host:port/database?options
  [[nodiscard]] static Result<std::unique_ptr<PostgresConnection>> open(std::string_view uri);
  ~PostgresConnection() { PQfinish(handle_); }
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // A statement without parameters that holds for the session: SET. Said again after a
  // reconnection.
  [[nodiscard]] Status set(const std::string& sql);
  // One statement with $1, $2, ...; prepared the first time. A server that was restarted since is
  // connected again, unless a transaction was lost.
  [[nodiscard]] Result<PostgresRows> run(const std::string& sql,
                                         std::span<const Parameter> parameters = {});
  // Several statements without parameters, answers ignored.
  [[nodiscard]] Status run_all(const char* sql);
  // "host:port/database"
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  explicit PostgresConnection(PGconn* handle);
  // A message of the server or of libpq on one line, without the password. They end in a line end,
  // and may be several lines.
  [[nodiscard]] std::string readable(const char* message) const;
  friend class PostgresTransaction;
  // The last answer to what was sent (`sent`: whether it was). Nothing, and the connection counts
  // as lost, if the server is silent for kPatience times the URI's connect_timeout.
  [[nodiscard]] PostgresRows answer(bool sent);
  [[nodiscard]] PostgresRows execute(const std::string& sql, std::span<const char* const> values);
  [[nodiscard]] bool reconnect();
  [[nodiscard]] Status failure(const PGresult* result) const;
  PGconn* handle_;
  std::string name_;
  std::vector<std::string> prepared_;  // its place is the statement's name
  std::vector<std::string> settings_;
  int patience_seconds_ = 0;
  bool in_transaction_ = false, silent_ = false;
};

// Shortest text that reads back as the same number.
inline Parameter real(double value) { return fmt::format("{}", value); }
template <typename Range>
Parameter list_of(const Range& values) {
  return fmt::format("{{{}}}", fmt::join(values, ","));
}

// Rolls back unless committed.
class PostgresTransaction {
 public:
  [[nodiscard]] static Result<PostgresTransaction> begin(PostgresConnection& db);
  PostgresTransaction(PostgresTransaction&& other) noexcept : db_(other.db_) {
    other.db_ = nullptr;
  }
  PostgresTransaction& operator=(PostgresTransaction&&) = delete;
  ~PostgresTransaction();
  [[nodiscard]] Status commit();

 private:
  explicit PostgresTransaction(PostgresConnection& db) : db_(&db) {}
  PostgresConnection* db_;
};

}  // namespace hone::db
