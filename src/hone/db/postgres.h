// db/postgres.h - libpq as values: a connection, and the rows of an answer as text. Every failure
// becomes one message that names the server and the database, never a password.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/db/sql_database.h"

namespace hone::db {

class PostgresRows {
 public:
  explicit PostgresRows(PGresult* result) : result_(result) {}
  [[nodiscard]] const PGresult* result() const { return result_.get(); }
  [[nodiscard]] bool succeeded() const;
  [[nodiscard]] int size() const { return PQntuples(result_.get()); }
  [[nodiscard]] int64_t changed() const;  // number of rows
  class ResultRow final : public Row {
   public:
    ResultRow(const PGresult* result, int row) : result_(result), row_(row) {}
    [[nodiscard]] std::string text(int column) const override;
    [[nodiscard]] int64_t integer(int column) const override;
    [[nodiscard]] double real(int column) const override;
    [[nodiscard]] std::vector<double> reals(int column) const override;

   private:
    const PGresult* result_;
    int row_;
  };
  [[nodiscard]] ResultRow row(int index) const { return {result_.get(), index}; }

 private:
  struct Clear {
    void operator()(PGresult* r) const { PQclear(r); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

class PostgresConnection {
 public:
  // Connects to postgres://user:password@host:port/database?options.
  [[nodiscard]] static Result<std::unique_ptr<PostgresConnection>> open(std::string_view uri);
  ~PostgresConnection() { PQfinish(handle_); }
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // Runs a statement without parameters that is valid for the session (SET). It is repeated after a
  // reconnection.
  [[nodiscard]] Status set(const std::string& sql);
  // Runs one statement with $1, $2, ..., which is prepared the first time if it has parameters. If
  // the server was restarted, it is connected again, unless a transaction was lost.
  [[nodiscard]] Result<PostgresRows> run(const std::string& sql,
                                         std::span<const Parameter> parameters = {});
  // Runs several statements without parameters and ignores their answers.
  [[nodiscard]] Status run_all(const char* sql);
  // Returns "host:port/database".
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  explicit PostgresConnection(PGconn* handle);
  // Returns a message of the server or of libpq on one line and without the password. Such messages
  // end in a line end and may have several lines.
  [[nodiscard]] std::string readable(const char* message) const;
  friend class PostgresTransaction;
  // Returns the last answer to what was sent; `sent` tells whether sending succeeded. If the server
  // is silent for kPatience times the URI's connect_timeout, there is no answer and the connection
  // counts as lost.
  [[nodiscard]] PostgresRows answer(bool sent);
  [[nodiscard]] PostgresRows execute(const std::string& sql, std::span<const char* const> values);
  [[nodiscard]] bool reconnect();
  [[nodiscard]] Status failure(const PGresult* result) const;
  PGconn* handle_;
  std::string name_;
  std::vector<std::string> prepared_;  // the position is the statement's name
  std::vector<std::string> settings_;
  int patience_seconds_ = 0;
  bool in_transaction_ = false, silent_ = false;
};

// A transaction that is rolled back unless it is committed.
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
