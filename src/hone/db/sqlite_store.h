// db/sqlite_store.h - the default store: one SQLite file in WAL mode (docs/formats/db_format.md).
#pragma once

#include <memory>
#include <string>

#include "hone/base/status.h"
#include "hone/db/store.h"

namespace hone::db {

[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                               const StoreOptions& options = {});

}  // namespace hone::db
