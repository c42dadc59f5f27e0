#include <algorithm>
#include <filesystem>

#include "hone/base/file.h"
#include "hone/database.h"

#include "command.h"
#include "command_files.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct Options {
  std::string db, folder;
};

Status ship(const Options& options) {
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db));
  HONE_ASSIGN_OR_RETURN(const auto files, database.shipped_files());
  if (files.empty()) return error(Code::kNotFound, "the database has no verified record");
  const auto path_of = [&](const std::string& name) {
    return (std::filesystem::path(options.folder) / name).string();
  };
  FileRoles roles;
  add_database_files("--db", options.db, DatabaseUse::kRead, roles);
  for (const auto& [name, text] : files) roles.written("FOLDER", path_of(name));
  HONE_RETURN_IF_ERROR(roles.check());
  for (const auto& [name, text] : files) {
    const std::string path = path_of(name);
    HONE_RETURN_IF_ERROR(write_file_atomic(path, text));
    fmt::print("wrote {}: {} records, {} bytes\n", path, std::count(text.begin(), text.end(), '\n'),
               format_count(static_cast<double>(text.size())));
  }
  return ok_status();
}

}  // namespace

Command db_ship_command(CLI::App& db) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = db.add_subcommand(
      "ship", "Write the fastest schedules of each kernel as files that other machines start from");
  app->add_option("folder", options->folder, "The folder in which to write ISA.jsonl")
      ->required()
      ->type_name("FOLDER");
  add_db(*app, options->db);
  return {app, [options] { return ship(*options); },
          [options](FileRoles& files) {
            add_database_files("--db", options->db, DatabaseUse::kRead, files);
          }};
}

}  // namespace hone::tool
