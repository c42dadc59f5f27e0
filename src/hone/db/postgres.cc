#include "hone/db/postgres.h"

#include <algorithm>
#include <charconv>

namespace hone::db {
namespace {

constexpr const char* kConnectSeconds = "10";  // unless the URI says otherwise

template <typename Number>
Number parse_number(std::string_view text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The server's messages end in a line end, and may be several lines.
std::string one_line(const char* message) {
  std::string text = message == nullptr ? "" : message;
  text.erase(text.find_last_not_of(" \n") + 1);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool succeeded(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

}  // namespace

int64_t PostgresRows::changed() const { return parse_number<int64_t>(PQcmdTuples(result_.get())); }

std::string PostgresRows::Row::text(int column) const {
  return {PQgetvalue(result, row, column), static_cast<size_t>(PQgetlength(result, row, column))};
}
int64_t PostgresRows::Row::integer(int column) const { return parse_number<int64_t>(text(column)); }
double PostgresRows::Row::real(int column) const { return parse_number<double>(text(column)); }

// "{1e-05,2.5e-05}"
std::vector<double> PostgresRows::Row::reals(int column) const {
  const std::string list = text(column);
  std::vector<double> values;
  for (size_t begin = 1; begin + 1 < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size() - 1);
    values.push_back(parse_number<double>(std::string_view(list).substr(begin, end - begin)));
    begin = end + 1;
  }
  return values;
}

PostgresConnection::PostgresConnection(PGconn* handle) : handle_(handle) {
  const auto part = [](const char* text) { return std::string(text == nullptr ? "" : text); };
  name_ = fmt::format("{}:{}/{}", part(PQhost(handle)), part(PQport(handle)), part(PQdb(handle)));
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(std::string_view uri) {
  const std::string text(uri);
  char* message = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(text.c_str(), &message);
  if (parsed == nullptr) {
    PQfreemem(message);  // it repeats the URI and with it the password
    return invalid("--db: found no proper URI, expected postgres://user@host:port/database");
  }
  PQconninfoFree(parsed);
  // Later ones win: the URI over the defaults.
  const char* const keywords[] = {"connect_timeout", "application_name", "dbname", nullptr};
  const char* const values[] = {kConnectSeconds, "hone", text.c_str(), nullptr};
  PGconn* handle = PQconnectdbParams(keywords, values, 1);
  if (handle == nullptr) return error(Code::kInternal, "out of memory");
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(handle));
  if (PQstatus(handle) != CONNECTION_OK) {
    return error(Code::kIo, "cannot connect to database {}: {}", connection->name(),
                 one_line(PQerrorMessage(handle)));
  }
  PQsetNoticeProcessor(
      handle, [](void*, const char*) {}, nullptr);
  HONE_RETURN_IF_ERROR(connection->run_all("SET client_encoding = 'UTF8'"));
  return connection;
}

Status PostgresConnection::failure(const PGresult* result) const {
  if (PQstatus(handle_) != CONNECTION_OK) {
    return error(Code::kIo, "lost the connection to database {}; what was stored before is kept",
                 name_);
  }
  const char* const field = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const std::string state = field == nullptr ? "" : field;
  const std::string detail =
      one_line(result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : nullptr);
  if (state == "25006") return error(Code::kInvalid, "database {} is open for reading only", name_);
  if (state.starts_with("23") || state.starts_with("22"))
    return invalid("database {} refuses the record: {}", name_, detail);
  if (state.starts_with("53")) {
    return error(Code::kIo, "no room to store in database {}; what was stored before is kept: {}",
                 name_, detail);
  }
  return error(Code::kIo, "database {}: {}", name_, detail);
}

Result<PostgresRows> PostgresConnection::run(const std::string& sql,
                                             std::span<const Parameter> parameters) {
  size_t place =
      static_cast<size_t>(std::find(prepared_.begin(), prepared_.end(), sql) - prepared_.begin());
  if (place == prepared_.size()) {
    PGresult* made = PQprepare(handle_, std::to_string(place).c_str(), sql.c_str(), 0, nullptr);
    const PostgresRows owner(made);
    if (!succeeded(made)) return failure(made);
    prepared_.push_back(sql);
  }
  std::vector<const char*> values;
  for (const Parameter& parameter : parameters) values.push_back(parameter.text.c_str());
  PGresult* result =
      PQexecPrepared(handle_, std::to_string(place).c_str(), static_cast<int>(values.size()),
                     values.data(), nullptr, nullptr, 0);
  PostgresRows rows(result);
  if (!succeeded(result)) return failure(result);
  return rows;
}

Status PostgresConnection::run_all(const char* sql) {
  PGresult* result = PQexec(handle_, sql);
  const PostgresRows rows(result);
  return succeeded(result) ? ok_status() : failure(result);
}

Result<PostgresTransaction> PostgresTransaction::begin(PostgresConnection& db) {
  HONE_RETURN_IF_ERROR(db.run_all("BEGIN"));
  return PostgresTransaction(db);
}

PostgresTransaction::~PostgresTransaction() {
  if (db_ != nullptr) (void)db_->run_all("ROLLBACK");
}

Status PostgresTransaction::commit() {
  PostgresConnection& db = *std::exchange(db_, nullptr);
  return db.run_all("COMMIT");
}

}  // namespace hone::db
