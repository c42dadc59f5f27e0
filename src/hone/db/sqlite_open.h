// db/sqlite_open.h - opens the file of a store. It checks that the file is one of ours, sound and
// not newer than this program and, if it may be written, migrates its schema to the current
// version.
#pragma once

#include <memory>
#include <string>

#include "hone/base/status.h"
#include "hone/db/sqlite.h"
#include "hone/db/store.h"

namespace hone::db {

[[nodiscard]] Result<std::unique_ptr<Connection>> open_sqlite(const std::string& path,
                                                              const StoreOptions& options);

}  // namespace hone::db
