#include "command_files.h"

#include "hone/cost/registry.h"
#include "hone/db/registry.h"

namespace hone::tool {

void add_tensor_files(std::string_view option, const std::vector<std::string>& texts,
                      FileRoles& files) {
  for (const std::string& text : texts) {
    const auto pair = parse_file_of_name(text);
    if (pair.ok()) files.read(std::string(option), pair->second);
  }
}

void add_cost_file(const std::string& cost, FileRoles& files) {
  if (cost.ends_with(".onnx") || cost::is_model_file(cost)) files.read("--cost", cost);
}

void add_database_files(std::string_view option, const std::string& where, DatabaseUse use,
                        FileRoles& files) {
  if (db::is_server(where)) return;
  const Result<std::string> path = db::store_path(where, {.read_only = true, .create = false});
  if (!path.ok()) return;
  for (const char* ending : {"", "-wal", "-shm", "-journal"}) {
    const std::string file = *path + ending;
    if (use == DatabaseUse::kRead)
      files.read(std::string(option), file);
    else
      files.updated(std::string(option), file);
  }
}

void add_build_files(const BuildOptionTexts& texts, DatabaseUse use, FileRoles& files) {
  add_tensor_files("--bind", texts.bind, files);
  add_cost_file(texts.cost, files);
  if (!texts.no_db) add_database_files("--db", texts.db, use, files);
}

void add_model_run_files(const ModelRunTexts& texts, FileRoles& files) {
  files.read("MODEL", texts.model);
  add_tensor_files("--bind", texts.bind, files);
  add_database_files("--db", texts.db, DatabaseUse::kRead, files);
}

}  // namespace hone::tool
