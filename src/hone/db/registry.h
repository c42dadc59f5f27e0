// db/registry.h - makes a store from the value of --db.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/store.h"

namespace hone::db {

// "" : the default path, whose folder is made if it is missing; "FILE": an SQLite database;
// "postgres://..." is not supported yet and says so.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view where,
                                                        const StoreOptions& options = {});
// The file that `where` means; the default one's folder is made if the file may be made.
[[nodiscard]] Result<std::string> store_path(std::string_view where, const StoreOptions& options);
// $XDG_DATA_HOME/hone/hone.db, else ~/.local/share/hone/hone.db.
[[nodiscard]] Result<std::string> default_path();

}  // namespace hone::db
