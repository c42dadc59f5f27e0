// db/registry.h - makes a store from the value of --db.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/store.h"

namespace hone::db {

// "" : the default path, whose folder is made if it is missing; "FILE": an SQLite database;
// "postgres://..." or "postgresql://...": a server's, if this was built with libpq.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view where,
                                                        const StoreOptions& options = {});
// "postgres://..." or "postgresql://...".
[[nodiscard]] bool is_server(std::string_view where);
// For people: a server's address is shown without user, password and options.
[[nodiscard]] std::string store_name(std::string_view where);
// The file that `where` means; the default one's folder is made if the file may be made.
[[nodiscard]] Result<std::string> store_path(std::string_view where, const StoreOptions& options);
// $XDG_DATA_HOME/hone/hone.db, else ~/.local/share/hone/hone.db.
[[nodiscard]] Result<std::string> default_path();

}  // namespace hone::db
