#include "hone/db/sqlite_open.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "hone/db/schema.h"
#include "hone/db/sqlite_schema.h"
#include "hone/db/store_address.h"

namespace hone::db {
namespace {

// A full check of the pages takes about 1 ms per MiB: for larger files the start would be slow,
// there SQLite finds a corrupt page when it reads it.
constexpr int64_t kCheckedBytes = int64_t{8} << 20;

// Percent signs, question and hash marks have a meaning in SQLite's file URIs, two slashes at the
// beginning, and names such as ":memory:" in place of one.
std::string file_uri(const std::string& path, const char* query) {
  std::string uri = path.starts_with('/') ? "file://" : "file:./";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + query;
}

// The file may come from anywhere, so nothing in it may run or cost without bound: no triggers, no
// views, no functions and virtual tables in its schema that could do harm. This is what
// https://www.sqlite.org/security.html advises; check_schema() then refuses what is not ours.
void distrust(sqlite3* handle) {
  constexpr std::pair<int, int> kSettings[] = {
      {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
      {SQLITE_DBCONFIG_DQS_DDL, 0},        {SQLITE_DBCONFIG_DQS_DML, 0},
      {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0}};
  for (const auto& [setting, value] : kSettings)
    sqlite3_db_config(handle, setting, value, static_cast<int*>(nullptr));
  // These limits are what the store's own statements need, and some more. VACUUM attaches a file,
  // and removing a trial removes its choices as a trigger does.
  constexpr std::pair<int, int> kLimits[] = {{SQLITE_LIMIT_LENGTH, kMaxSqliteBytes},
                                             {SQLITE_LIMIT_SQL_LENGTH, 100'000},
                                             {SQLITE_LIMIT_COLUMN, 100},
                                             {SQLITE_LIMIT_EXPR_DEPTH, 100},
                                             {SQLITE_LIMIT_COMPOUND_SELECT, 10},
                                             {SQLITE_LIMIT_VDBE_OP, 25'000},
                                             {SQLITE_LIMIT_FUNCTION_ARG, 16},
                                             {SQLITE_LIMIT_ATTACHED, 1},
                                             {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
                                             {SQLITE_LIMIT_VARIABLE_NUMBER, 100},
                                             {SQLITE_LIMIT_TRIGGER_DEPTH, 10},
                                             {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (const auto& [limit, value] : kLimits) sqlite3_limit(handle, limit, value);
}

// SQLite would wait for the writer of a pipe, and take any device for a database.
Status check_kind(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::file_type type = std::filesystem::status(path, unknown).type();
  using Type = std::filesystem::file_type;
  if (type == Type::fifo || type == Type::character || type == Type::block || type == Type::socket)
    return invalid("database {}: it is a device or a pipe, expected a file", path);
  return ok_status();
}

Result<std::unique_ptr<Connection>> connect(const std::string& path, const char* query, int flags,
                                            int busy_timeout_ms) {
  HONE_RETURN_IF_ERROR(check_kind(path));
  sqlite3* handle = nullptr;
  const std::string name = path == kMemory ? path : file_uri(path, query);
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_URI, nullptr);
  auto connection = std::make_unique<Connection>(handle, path);
  if (handle == nullptr) return error(Code::kInternal, "database {}: out of memory", path);
  if (code != SQLITE_OK) return connection->failure();
  connection->remember_file();
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, busy_timeout_ms);
  distrust(handle);
  HONE_RETURN_IF_ERROR(connection->run("PRAGMA cell_size_check = ON"));
  return connection;
}

struct Identity {
  int64_t application = 0, version = 0, tables = 0;
};

Result<Identity> read_identity(Connection& db) {
  Identity id;
  HONE_ASSIGN_OR_RETURN(id.application, db.integer("PRAGMA application_id"));
  HONE_ASSIGN_OR_RETURN(id.version, db.integer("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(id.tables, db.integer("SELECT count(*) FROM sqlite_schema"));
  return id;
}

bool is_empty(const Identity& id) {
  return id.tables == 0 && id.version == 0 && id.application == 0;
}

Status check_identity(const Connection& db, const Identity& id) {
  if (!is_empty(id) && id.application != kApplicationId) {
    return invalid("{} is not a hone database but one of another program", db.path());
  }
  if (id.version < 0) {
    return invalid(
        "database {} is corrupt (format version {}); set it aside and use another database",
        db.path(), id.version);
  }
  if (id.version > kSchemaVersion) {
    return error(
        Code::kUnsupported,
        "database {} has format version {}, this hone knows up to {}; use a newer hone or another database",
        db.path(), id.version, kSchemaVersion);
  }
  return ok_status();
}

// In one read transaction: another process may be making the database right now.
Result<Identity> checked_identity(Connection& db) {
  HONE_RETURN_IF_ERROR(db.run("BEGIN"));
  const auto check = [&db]() -> Result<Identity> {
    HONE_ASSIGN_OR_RETURN(const Identity id, read_identity(db));
    HONE_RETURN_IF_ERROR(check_identity(db, id));
    HONE_RETURN_IF_ERROR(check_schema(db, static_cast<int>(id.version)));
    return id;
  };
  Result<Identity> id = check();
  const Status ended = db.run("COMMIT");
  if (id.ok() && !ended.ok()) return ended;
  return id;
}

Status check_pages(Connection& db) {
  std::error_code failure;
  const auto bytes = std::filesystem::file_size(db.path(), failure);
  if (failure || bytes == 0 || static_cast<int64_t>(bytes) > kCheckedBytes) return ok_status();
  HONE_ASSIGN_OR_RETURN(Statement s, Statement::prepare(db, "PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, s.step());
  const std::string verdict = row ? s.text(0) : "ok";
  return verdict == "ok" ? ok_status() : sqlite_error(SQLITE_CORRUPT, db.path(), verdict);
}

// Two processes that turn a new file into a WAL database at the same moment would wait for each
// other, so SQLite fails one of them at once, without its busy timeout: try again here.
Status switch_to_wal(Connection& db, int busy_timeout_ms) {
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_timeout_ms);
  for (;;) {
    const Status status = db.run("PRAGMA journal_mode = WAL");
    const bool busy = (sqlite3_extended_errcode(db.handle()) & 0xff) == SQLITE_BUSY;
    if (status.ok() || !busy || std::chrono::steady_clock::now() >= give_up) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Status migrate(Connection& db) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(db));
  // Read again under the lock: another process may have been faster.
  HONE_ASSIGN_OR_RETURN(const Identity id, read_identity(db));
  HONE_RETURN_IF_ERROR(check_identity(db, id));
  HONE_RETURN_IF_ERROR(check_schema(db, static_cast<int>(id.version)));
  for (int64_t v = id.version; v < kSchemaVersion; ++v)
    HONE_RETURN_IF_ERROR(db.run(kMigrations[v]));
  HONE_RETURN_IF_ERROR(db.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                          kApplicationId, kSchemaVersion)
                                  .c_str()));
  return transaction.commit();
}

Result<std::unique_ptr<Connection>> open_for_reading(const std::string& path,
                                                     const StoreOptions& options) {
  std::error_code failure;
  if (std::string folder; is_missing_folder(path, folder))
    return error(Code::kNotFound, "folder {} of database {} does not exist", folder, path);
  if (!std::filesystem::exists(path, failure))
    return error(Code::kNotFound, "database {} does not exist", path);
  // WAL needs to write beside the file; where that is impossible nobody else can be writing, so
  // the file is as good as immutable.
  const auto folder = std::filesystem::absolute(path).parent_path();
  const bool immutable = access(folder.c_str(), W_OK) != 0;
  HONE_ASSIGN_OR_RETURN(auto db, connect(path, immutable ? "?immutable=1" : "",
                                         SQLITE_OPEN_READONLY, options.busy_timeout_ms));
  HONE_ASSIGN_OR_RETURN(const Identity id, checked_identity(*db));
  if (is_empty(id))
    return invalid("database {} is empty, expected one in which something was stored", path);
  if (id.version < kOldestReadable) {
    return invalid("database {} has the older format version {}; open it once for writing", path,
                   id.version);
  }
  HONE_RETURN_IF_ERROR(check_pages(*db));
  return db;
}

Result<std::unique_ptr<Connection>> open_for_writing(const std::string& path,
                                                     const StoreOptions& options) {
  const int flags = SQLITE_OPEN_READWRITE | (options.create ? SQLITE_OPEN_CREATE : 0);
  HONE_ASSIGN_OR_RETURN(auto db, connect(path, "", flags, options.busy_timeout_ms));
  if (sqlite3_db_readonly(db->handle(), "main") == 1)
    return sqlite_error(SQLITE_READONLY, path, "");
  // No byte is written before the file is known to be ours.
  HONE_ASSIGN_OR_RETURN(const Identity id, checked_identity(*db));
  HONE_RETURN_IF_ERROR(check_pages(*db));
  HONE_RETURN_IF_ERROR(switch_to_wal(*db, options.busy_timeout_ms));
  HONE_RETURN_IF_ERROR(db->run("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON"));
  if (options.max_bytes > 0) {
    HONE_ASSIGN_OR_RETURN(const int64_t page, db->integer("PRAGMA page_size"));
    HONE_RETURN_IF_ERROR(db->run(
        fmt::format("PRAGMA max_page_count = {}", std::max<int64_t>(1, options.max_bytes / page))
            .c_str()));
  }
  if (id.version < kSchemaVersion) HONE_RETURN_IF_ERROR(migrate(*db));
  return db;
}

}  // namespace

Result<std::unique_ptr<Connection>> open_sqlite(const std::string& path,
                                                const StoreOptions& options) {
  return options.read_only ? open_for_reading(path, options) : open_for_writing(path, options);
}

}  // namespace hone::db
