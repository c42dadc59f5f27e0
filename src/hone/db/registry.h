// db/registry.h - opens a store from the value of --db.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/store.h"

namespace hone::db {

// Opens the store: "" is the default path, whose folder is created if it is missing; "FILE" is an
// SQLite database; "postgres://..." or "postgresql://..." is a server, if this program was built
// with libpq.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view where,
                                                        const StoreOptions& options = {});
// Returns whether it is "postgres://..." or "postgresql://...".
[[nodiscard]] bool is_server(std::string_view where);
// Returns a name for people. A server's address is shown without user, password and options.
[[nodiscard]] std::string store_name(std::string_view where);
// Returns the file that `where` means. The folder of the default one is created if the file may be
// created.
[[nodiscard]] Result<std::string> store_path(std::string_view where, const StoreOptions& options);
// Makes the folder of a file, and those that it is in.
[[nodiscard]] Status make_folder_of(const std::string& path);
// Returns $XDG_DATA_HOME/hone/hone.db, or ~/.local/share/hone/hone.db if that is not set.
[[nodiscard]] Result<std::string> default_path();

}  // namespace hone::db
