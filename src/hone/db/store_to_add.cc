#include "hone/db/store_to_add.h"

#include <unistd.h>

#include <filesystem>

#include "hone/db/sql_store.h"

namespace hone::db {
namespace {

// Returns whether there is no such file, and one can be made.
bool is_to_be_made(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::symlink_status(path, ignored).type() != fs::file_type::not_found) return false;
  const fs::path folder = fs::absolute(path, ignored).parent_path();
  return fs::is_directory(folder, ignored) && access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Result<std::unique_ptr<Store>> open_store_to_add(std::string_view where) {
  if (is_server(where)) return open_store(where);
  HONE_ASSIGN_OR_RETURN(const std::string path, store_path(where, {}));
  if (!is_to_be_made(path)) return open_store(where);
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, open_sqlite_database_later(path));
  return make_sql_store(std::move(database));
}

}  // namespace hone::db
