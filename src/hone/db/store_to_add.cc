#include "hone/db/store_to_add.h"

#include <unistd.h>

#include <filesystem>

#include "hone/db/sql_store.h"

namespace hone::db {
namespace {

// Returns whether there is no such file, and one can be made; with `makes_folder`, also where
// folders have to be.
bool is_to_be_made(const std::string& path, bool makes_folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::symlink_status(path, ignored).type() != fs::file_type::not_found) return false;
  fs::path folder = fs::absolute(path, ignored).parent_path();
  while (makes_folder && folder.has_relative_path() &&
         fs::symlink_status(folder, ignored).type() == fs::file_type::not_found)
    folder = folder.parent_path();
  return fs::is_directory(folder, ignored) && access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Result<std::unique_ptr<Store>> open_store_to_add(std::string_view where) {
  if (is_server(where)) return open_store(where);
  HONE_ASSIGN_OR_RETURN(const std::string path, store_path(where, {.create = false}));
  const bool makes_folder = where.empty();
  if (!is_to_be_made(path, makes_folder)) return open_store(where);
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                        open_sqlite_database_later(path, makes_folder));
  return make_sql_store(std::move(database));
}

}  // namespace hone::db
