#include "hone/db/postgres.h"
#include "hone/db/postgres_open.h"
#include "hone/db/sql_database.h"

namespace hone::db {
namespace {

constexpr int64_t kSqliteVersions = 2;  // so many versions of SQLite's files came before the tables

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(std::unique_ptr<PostgresConnection> db, int version)
      : Database(db->name(), {.version = version + kSqliteVersions,
                              .by_time = "",
                              .keep = " FOR KEY SHARE",
                              .lock = " FOR UPDATE"}),
        db_(std::move(db)) {}

  Result<int64_t> run(const std::string& sql, std::span<const Parameter> parameters,
                      const EachRow& each_row) override {
    HONE_ASSIGN_OR_RETURN(const PostgresRows rows, db_->run(sql, parameters));
    for (int i = 0; each_row && i < rows.size(); ++i) HONE_RETURN_IF_ERROR(each_row(rows.row(i)));
    return rows.changed();
  }

  Status transact(const std::function<Status()>& body) override {
    HONE_ASSIGN_OR_RETURN(PostgresTransaction transaction, PostgresTransaction::begin(*db_));
    HONE_RETURN_IF_ERROR(body());
    return transaction.commit();
  }

  // The server keeps pages and keys whole; what is left are records that no hone could read.
  Result<std::vector<std::string>> check_structure() override {
    std::vector<std::string> problems;
    HONE_RETURN_IF_ERROR(
        run("SELECT id FROM trial WHERE outcome = 'ok' AND (cardinality(times) = 0 OR NOT "
            "centre > 0) LIMIT 20",
            {},
            [&](const Row& row) {
              problems.push_back(fmt::format("trial {} is ok but has no time", row.integer(0)));
              return ok_status();
            })
            .status());
    return problems;
  }

  Status compact() override { return ok_status(); }  // the server's autovacuum does it

 private:
  std::unique_ptr<PostgresConnection> db_;
};

}  // namespace

Result<std::unique_ptr<Database>> open_postgres_database(std::string_view uri,
                                                         const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> db, open_postgres(uri, options));
  HONE_ASSIGN_OR_RETURN(const int version, postgres_version(*db));
  return std::unique_ptr<Database>(std::make_unique<PostgresDatabase>(std::move(db), version));
}

}  // namespace hone::db
