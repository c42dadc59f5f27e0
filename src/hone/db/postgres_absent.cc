#include "hone/db/sql_database.h"

namespace hone::db {

Result<std::unique_ptr<Database>> open_postgres_database(std::string_view, const StoreOptions&) {
  return error(
      Code::kUnsupported,
      "the database: this hone was built without PostgreSQL (libpq-dev), expected a file name");
}

}  // namespace hone::db
