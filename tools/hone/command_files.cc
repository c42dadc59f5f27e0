#include "command_files.h"

#include "hone/base/split_options.h"
#include "hone/compile.h"
#include "hone/cost_models.h"
#include "hone/database.h"

namespace hone::tool {

void add_tensor_files(std::string_view option, const std::vector<std::string>& texts,
                      FileRoles& files) {
  for (const std::string& text : texts) {
    const auto pair = parse_file_of_name(text);
    const bool is_number = option == "--bind" && parse_number_of_name(text).has_value();
    if (pair.ok() && !is_number) files.read(std::string(option), pair->second);
  }
}

void add_cost_file(const std::string& cost, FileRoles& files) {
  if (is_cost_model_file(cost)) files.read("--cost", cost);
}

void add_file_with_options(std::string_view option, const std::string& text, FileRoles& files) {
  const std::string name(split_options(text).first);
  if (is_cost_model_file(name)) files.read(std::string(option), name);
}

void add_database_files(std::string_view option, const std::string& where, DatabaseUse use,
                        FileRoles& files) {
  for (const std::string& file : database_files(where)) {
    if (use == DatabaseUse::kRead)
      files.read(std::string(option), file);
    else
      files.updated(std::string(option), file);
  }
}

void add_outputs(const std::string& output, bool header, FileRoles& files) {
  files.written("--output", output);
  if (header) files.written("--header", header_path(output));
}

void add_build_files(const BuildOptionTexts& texts, DatabaseUse use, FileRoles& files) {
  add_tensor_files("--bind", texts.bind, files);
  add_cost_file(texts.cost, files);
  add_file_with_options("--refine", texts.refine, files);
  if (!texts.no_db) add_database_files("--db", texts.db, use, files);
}

void add_model_run_files(const ModelRunTexts& texts, FileRoles& files) {
  files.read("MODEL", texts.model);
  add_tensor_files("--bind", texts.bind, files);
  add_database_files("--db", texts.db, DatabaseUse::kRead, files);
}

}  // namespace hone::tool
