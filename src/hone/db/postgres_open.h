// db/postgres_open.h - connects to a server. It checks that the tables are not newer than this
// program and, if they may be written, creates them or migrates them to the current version.
#pragma once

#include <memory>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/postgres.h"
#include "hone/db/store.h"

namespace hone::db {

[[nodiscard]] Result<std::unique_ptr<PostgresConnection>> open_postgres(
    std::string_view uri, const StoreOptions& options);
// Returns the version of the tables; 0 if there are none.
[[nodiscard]] Result<int> postgres_version(PostgresConnection& db);

}  // namespace hone::db
