#include "hone/db/postgres_open.h"

#include "hone/db/postgres_schema.h"

namespace hone::db {
namespace {

// Any number that no other program uses: who holds it makes the tables.
constexpr const char* kLockTables = "SELECT pg_advisory_xact_lock(1212632645)";

Status migrate(PostgresConnection& db) {
  HONE_ASSIGN_OR_RETURN(PostgresTransaction transaction, PostgresTransaction::begin(db));
  HONE_RETURN_IF_ERROR(db.run_all(kLockTables));
  HONE_ASSIGN_OR_RETURN(const int version, postgres_version(db));
  for (int v = version; v < kPostgresVersion; ++v) {
    HONE_RETURN_IF_ERROR(db.run_all(kPostgresMigrations[v]));
    HONE_RETURN_IF_ERROR(
        db.run_all(fmt::format("UPDATE hone_version SET version = {}", v + 1).c_str()));
  }
  return transaction.commit();
}

}  // namespace

// The list of tables is asked because to_regclass() may still answer as before a lock was waited
// for, while another process made them.
Result<int> postgres_version(PostgresConnection& db) {
  HONE_ASSIGN_OR_RETURN(const PostgresRows table,
                        db.run("SELECT FROM pg_tables WHERE tablename = 'hone_version' AND "
                               "schemaname = current_schema()"));
  if (table.size() == 0) return 0;
  HONE_ASSIGN_OR_RETURN(const PostgresRows rows, db.run("SELECT version FROM hone_version"));
  return rows.size() == 1 ? static_cast<int>(rows.row(0).integer(0)) : 0;
}

Result<std::unique_ptr<PostgresConnection>> open_postgres(std::string_view uri,
                                                          const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> db, PostgresConnection::open(uri));
  if (options.read_only) HONE_RETURN_IF_ERROR(db->set("SET default_transaction_read_only = on"));
  HONE_RETURN_IF_ERROR(db->set(fmt::format("SET lock_timeout = {}", options.busy_timeout_ms)));
  HONE_ASSIGN_OR_RETURN(const int version, postgres_version(*db));
  if (version > kPostgresVersion) {
    return error(
        Code::kUnsupported,
        "database {} has format version {}, this hone knows up to {}; use a newer hone or another database",
        db->name(), version, kPostgresVersion);
  }
  if (version == 0 && (options.read_only || !options.create))
    return error(Code::kNotFound, "database {} holds no trials of hone", db->name());
  if (version < kPostgresVersion && !options.read_only) HONE_RETURN_IF_ERROR(migrate(*db));
  return db;
}

}  // namespace hone::db
