// db/sqlite_open.h - opens the file of a store: checks that it is ours, sound and not newer than
// this program, then, if it may be written to, brings its schema up to date.
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
