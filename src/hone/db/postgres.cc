#include "hone/db/postgres.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "hone/db/store_address.h"

namespace hone::db {
namespace {

constexpr const char* kConnectSeconds = "10";  // unless the URI says otherwise
// So many times as long as a connection may take a server may say nothing.
constexpr int kPatience = 6;

template <typename Number>
Number parse_number(std::string_view text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The connect_timeout that a connection was made with.
int connect_seconds(PGconn* handle) {
  PQconninfoOption* options = PQconninfo(handle);
  int seconds = 0;
  for (const PQconninfoOption* option = options; option && option->keyword; ++option) {
    if (option->val && std::string_view(option->keyword) == "connect_timeout")
      seconds = parse_number<int>(option->val);
  }
  PQconninfoFree(options);
  return seconds > 0 ? seconds : parse_number<int>(kConnectSeconds);
}

// The shortest text that reads back as the same number.
template <typename Number>
std::string to_text(Number value) {
  return fmt::format("{}", value);
}
std::string to_text(const std::string& text) { return text; }
std::string to_text(std::span<const double> values) {
  return fmt::format("{{{}}}", fmt::join(values, ","));
}

}  // namespace

bool PostgresRows::succeeded() const {
  const ExecStatusType status = PQresultStatus(result_.get());
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

int64_t PostgresRows::changed() const { return parse_number<int64_t>(PQcmdTuples(result_.get())); }

std::string PostgresRows::ResultRow::text(int column) const {
  return {PQgetvalue(result_, row_, column),
          static_cast<size_t>(PQgetlength(result_, row_, column))};
}
int64_t PostgresRows::ResultRow::integer(int column) const {
  return parse_number<int64_t>(text(column));
}
double PostgresRows::ResultRow::real(int column) const {
  return parse_number<double>(text(column));
}

// "{1e-05,2.5e-05}"
std::vector<double> PostgresRows::ResultRow::reals(int column) const {
  const std::string list = text(column);
  std::vector<double> values;
  for (size_t begin = 1; begin + 1 < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size() - 1);
    values.push_back(parse_number<double>(std::string_view(list).substr(begin, end - begin)));
    begin = end + 1;
  }
  return values;
}

std::string PostgresConnection::readable(const char* message) const {
  std::string text = message == nullptr ? "" : message;
  text.erase(text.find_last_not_of(" \n") + 1);
  std::replace(text.begin(), text.end(), '\n', ' ');
  const char* const password = PQpass(handle_);
  const std::string_view secret = password == nullptr ? "" : password;
  for (size_t at = 0; !secret.empty() && (at = text.find(secret, at)) != std::string::npos; ++at)
    text.replace(at, secret.size(), "***");
  return text;
}

PostgresConnection::PostgresConnection(PGconn* handle) : handle_(handle) {
  const auto part = [](const char* text) { return std::string(text == nullptr ? "" : text); };
  name_ = fmt::format("{}:{}/{}", part(PQhost(handle)), part(PQport(handle)), part(PQdb(handle)));
  patience_seconds_ = kPatience * std::min(connect_seconds(handle), 3600);
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(std::string_view uri) {
  HONE_RETURN_IF_ERROR(check_address(uri));
  const std::string text(uri);
  char* message = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(text.c_str(), &message);
  if (parsed == nullptr) {
    PQfreemem(message);  // it repeats the URI and with it the password
    return invalid(
        "the database: found no proper URI, expected postgres://user@host:port/database");
  }
  PQconninfoFree(parsed);
  // Later ones win: the URI over the defaults. A server that cannot be reached any more is given up
  // after half a minute.
  const char* const keywords[] = {
      "connect_timeout",     "tcp_user_timeout", "keepalives_idle", "keepalives_count",
      "keepalives_interval", "application_name", "dbname",          nullptr};
  const char* const values[] = {kConnectSeconds, "30000",      "15",   "3", "5",
                                "hone",          text.c_str(), nullptr};
  PGconn* handle = PQconnectdbParams(keywords, values, 1);
  if (handle == nullptr) return error(Code::kInternal, "out of memory");
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(handle));
  if (PQstatus(handle) != CONNECTION_OK) {
    return error(Code::kIo, "cannot connect to database {}: {}", connection->name(),
                 connection->readable(PQerrorMessage(handle)));
  }
  PQsetNoticeProcessor(
      handle, [](void*, const char*) {}, nullptr);
  HONE_RETURN_IF_ERROR(connection->set("SET client_encoding = 'UTF8'"));
  return connection;
}

PostgresRows PostgresConnection::answer(bool sent) {
  if (!sent) return PostgresRows(nullptr);
  PostgresRows last(nullptr);
  while (true) {
    while (PQisBusy(handle_) == 1) {
      pollfd socket = {PQsocket(handle_), POLLIN, 0};
      const int ready = poll(&socket, 1, 1000 * patience_seconds_);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        silent_ = true;
        shutdown(PQsocket(handle_), SHUT_RDWR);  // what comes later is no answer to the next one
      }
      if (PQconsumeInput(handle_) == 0) break;
    }
    PGresult* next = PQgetResult(handle_);
    if (next == nullptr) return last;
    last = PostgresRows(next);
  }
}

Status PostgresConnection::failure(const PGresult* result) const {
  if (silent_) {
    return error(Code::kIo,
                 "database {} gave no answer within {} s, {} times the connect_timeout of its URI; "
                 "what was stored before is kept",
                 name_, patience_seconds_, kPatience);
  }
  if (PQstatus(handle_) != CONNECTION_OK) {
    return error(Code::kIo, "lost the connection to database {}; what was stored before is kept",
                 name_);
  }
  const char* const field = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const std::string state = field == nullptr ? "" : field;
  const std::string detail = readable(result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)
                                             : PQerrorMessage(handle_));
  if (state == "25006") return error(Code::kInvalid, "database {} is open for reading only", name_);
  if (state == "55P03") {
    return error(
        Code::kIo,
        "database {} is locked by another process; wait for it to end or use another database",
        name_);
  }
  if (state.starts_with("23") || state.starts_with("22"))
    return invalid("database {} refuses the record: {}", name_, detail);
  if (state.starts_with("53")) {
    return error(Code::kIo, "no room to store in database {}; what was stored before is kept: {}",
                 name_, detail);
  }
  return error(Code::kIo, "database {}: {}", name_, detail);
}

bool PostgresConnection::reconnect() {
  if (PQstatus(handle_) == CONNECTION_OK || in_transaction_ || silent_) return false;
  PQreset(handle_);
  prepared_.clear();
  bool good = PQstatus(handle_) == CONNECTION_OK;
  for (const std::string& sql : settings_)
    good = good && answer(PQsendQuery(handle_, sql.c_str()) == 1).succeeded();
  return good;
}

PostgresRows PostgresConnection::execute(const std::string& sql,
                                         std::span<const char* const> values) {
  if (values.empty()) return answer(PQsendQuery(handle_, sql.c_str()) == 1);
  const auto known = std::find(prepared_.begin(), prepared_.end(), sql);
  const std::string name = std::to_string(known - prepared_.begin());
  if (known == prepared_.end()) {
    PostgresRows made = answer(PQsendPrepare(handle_, name.c_str(), sql.c_str(), 0, nullptr) == 1);
    if (!made.succeeded()) return made;
    prepared_.push_back(sql);
  }
  return answer(PQsendQueryPrepared(handle_, name.c_str(), static_cast<int>(values.size()),
                                    values.data(), nullptr, nullptr, 0) == 1);
}

Result<PostgresRows> PostgresConnection::run(const std::string& sql,
                                             std::span<const Parameter> parameters) {
  std::vector<std::string> texts;
  std::vector<const char*> values;
  for (const Parameter& parameter : parameters) {
    texts.push_back(std::visit([](const auto& value) { return to_text(value); }, parameter));
    if (texts.back().find('\0') != std::string::npos)
      return invalid("database {} stores no text with a zero byte", name_);
  }
  for (const std::string& text : texts) values.push_back(text.c_str());
  PostgresRows rows = execute(sql, values);
  if (!rows.succeeded() && reconnect()) rows = execute(sql, values);
  if (!rows.succeeded()) return failure(rows.result());
  return rows;
}

Status PostgresConnection::run_all(const char* sql) {
  PostgresRows rows = answer(PQsendQuery(handle_, sql) == 1);
  if (!rows.succeeded() && reconnect()) rows = answer(PQsendQuery(handle_, sql) == 1);
  return rows.succeeded() ? ok_status() : failure(rows.result());
}

Status PostgresConnection::set(const std::string& sql) {
  HONE_RETURN_IF_ERROR(run_all(sql.c_str()));
  settings_.push_back(sql);
  return ok_status();
}

Result<PostgresTransaction> PostgresTransaction::begin(PostgresConnection& db) {
  HONE_RETURN_IF_ERROR(db.run_all("BEGIN"));
  db.in_transaction_ = true;
  return PostgresTransaction(db);
}

PostgresTransaction::~PostgresTransaction() {
  if (db_ == nullptr) return;
  (void)db_->run_all("ROLLBACK");
  db_->in_transaction_ = false;
}

Status PostgresTransaction::commit() {
  PostgresConnection& db = *std::exchange(db_, nullptr);
  const Status status = db.run_all("COMMIT");
  db.in_transaction_ = false;
  return status;
}

}  // namespace hone::db
