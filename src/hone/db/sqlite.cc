#include "hone/db/sqlite.h"

#include <sys/stat.h>

#include <filesystem>

namespace hone::db {

bool is_missing_folder(const std::string& path, std::string& folder) {
  folder = std::filesystem::path(path).parent_path().string();
  std::error_code failure;
  return !folder.empty() && !std::filesystem::is_directory(folder, failure);
}

Status sqlite_error(int extended_code, const std::string& path, std::string_view detail) {
  switch (extended_code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return error(
          Code::kIo,
          "database {} is locked by another process; wait for it to end or use another database",
          path);
    case SQLITE_CORRUPT:
      return error(Code::kIo, "database {} is corrupt ({}); set it aside and use another database",
                   path, detail);
    case SQLITE_NOTADB: return error(Code::kInvalid, "{} is not a hone database", path);
    case SQLITE_READONLY: return error(Code::kIo, "database {} is read-only", path);
    case SQLITE_FULL:
      return error(Code::kIo,
                   "no space left to store in database {}; what was stored before is kept", path);
    case SQLITE_CANTOPEN: {
      std::string folder;
      std::error_code failure;
      if (is_missing_folder(path, folder)) {
        return error(Code::kNotFound, "folder {} of database {} does not exist", folder, path);
      }
      if (std::filesystem::is_directory(path, failure)) {
        return error(Code::kInvalid, "database {} is a folder, expected a file", path);
      }
      if (!std::filesystem::exists(path, failure)) {
        return error(Code::kNotFound, "database {} does not exist or cannot be made", path);
      }
      return error(Code::kIo, "database {} cannot be opened: {}", path, detail);
    }
    case SQLITE_IOERR:
      if (extended_code == SQLITE_IOERR_WRITE || extended_code == SQLITE_IOERR_FSYNC ||
          extended_code == SQLITE_IOERR_SHMSIZE || extended_code == SQLITE_IOERR_TRUNCATE) {
        return error(
            Code::kIo,
            "cannot write to database {} (disk full or failing); what was stored before is kept",
            path);
      }
      return error(Code::kIo, "cannot read database {}: {}", path, detail);
    case SQLITE_TOOBIG:
      return invalid("database {} has or gets a text of more than {} MiB", path,
                     kMaxSqliteBytes >> 20);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH: return invalid("database {} refuses the record: {}", path, detail);
    default: return error(Code::kInternal, "database {}: {}", path, detail);
  }
}

Status Connection::failure() const {
  return sqlite_error(sqlite3_extended_errcode(handle_), path_, sqlite3_errmsg(handle_));
}

void Connection::remember_file() {
  struct stat info = {};
  if (stat(path_.c_str(), &info) == 0) file_ = {info.st_dev, info.st_ino};
}

Status Connection::check_file() const {
  if (!file_) return ok_status();
  struct stat info = {};
  const bool found = stat(path_.c_str(), &info) == 0;
  if (found && *file_ == std::pair(info.st_dev, info.st_ino)) return ok_status();
  return error(Code::kIo,
               "database {} was {} by another program while it was in use; what is measured from "
               "then on is not kept",
               path_, found ? "replaced" : "removed");
}

Status Connection::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failure();
  return ok_status();
}

Result<int64_t> Connection::integer(const char* sql) {
  HONE_ASSIGN_OR_RETURN(Statement s, Statement::prepare(*this, sql));
  HONE_ASSIGN_OR_RETURN(const bool row, s.step());
  return row ? s.integer(0) : int64_t{0};
}

Result<Statement> Statement::prepare(Connection& db, const std::string& sql) {
  sqlite3_stmt* s = nullptr;
  if (sqlite3_prepare_v3(db.handle(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &s, nullptr) != SQLITE_OK) {
    return db.failure();
  }
  return Statement(db, s);
}

Statement& Statement::bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), next_++, value);
  return *this;
}

Statement& Statement::bind(double value) {
  sqlite3_bind_double(statement_.get(), next_++, value);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();  // null would bind NULL
  sqlite3_bind_text64(statement_.get(), next_++, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(std::span<const double> numbers) {
  const void* data = numbers.empty() ? "" : static_cast<const void*>(numbers.data());
  sqlite3_bind_blob64(statement_.get(), next_++, data, numbers.size_bytes(), SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const Status failure = db_->failure();
  reset();
  return failure;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  next_ = 1;
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::string() : std::string(data, bytes);
}

std::string_view Statement::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  return {data, data == nullptr
                    ? 0
                    : static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Result<Transaction> Transaction::begin(Connection& db) {
  HONE_RETURN_IF_ERROR(db.check_file());
  HONE_RETURN_IF_ERROR(db.run("BEGIN IMMEDIATE"));
  return Transaction(db);
}

Transaction::~Transaction() {
  // SQLite itself has rolled back after some errors; then there is nothing to do.
  if (db_ != nullptr && sqlite3_get_autocommit(db_->handle()) == 0) {
    sqlite3_exec(db_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

Status Transaction::commit() {
  HONE_RETURN_IF_ERROR(db_->run("COMMIT"));
  return std::exchange(db_, nullptr)->check_file();
}

}  // namespace hone::db
