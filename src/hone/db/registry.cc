#include "hone/db/registry.h"

#include <cstdlib>
#include <filesystem>

#include "hone/db/sql_store.h"
#include "hone/db/store_address.h"

namespace hone::db {

Result<std::string> default_path() {
  // The XDG base directory specification: a relative path in the variable is to be ignored.
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return std::string(data) + "/hone/hone.db";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] != '\0') return std::string(home) + "/.local/share/hone/hone.db";
  return error(
      Code::kNotFound,
      "no place for the database: neither XDG_DATA_HOME nor HOME is set, and no file is named for it "
      "(RecordOptions::db, --db FILE)");
}

Status make_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (!failure) return ok_status();
  return error(Code::kIo, "cannot make the folder {} of the database: {}", folder.string(),
               failure.message());
}

Result<std::string> store_path(std::string_view where, const StoreOptions& options) {
  HONE_RETURN_IF_ERROR(check_address(where));
  if (is_server(where)) return invalid("the database: found a server, expected a file name");
  if (!where.empty()) return std::string(where);
  HONE_ASSIGN_OR_RETURN(std::string path, default_path());
  if (!options.read_only && options.create) HONE_RETURN_IF_ERROR(make_folder_of(path));
  return path;
}

Result<std::unique_ptr<Database>> open_database(std::string_view where,
                                                const StoreOptions& options) {
  if (where == kMemory) return open_sqlite_database(kMemory, options);
  HONE_RETURN_IF_ERROR(check_address(where));
  if (is_server(where)) return open_postgres_database(where, options);
  HONE_ASSIGN_OR_RETURN(const std::string path, store_path(where, options));
  return open_sqlite_database(path, options);
}

Result<std::unique_ptr<Store>> open_store(std::string_view where, const StoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, open_database(where, options));
  return make_sql_store(std::move(database));
}

}  // namespace hone::db
