// tools/hone/command_files.h - which files the options that several commands share read and write.
// What a command says of its files (Command::files) is checked before it runs: base/file_roles.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/file_roles.h"

#include "option_texts.h"

namespace hone::tool {

// NAME=FILE.npy, as of --input and --bind.
void add_tensor_files(std::string_view option, const std::vector<std::string>& texts,
                      FileRoles& files);
// A trained cost model; the others are no files.
void add_cost_file(const std::string& cost, FileRoles& files);
// The file of an option whose text has options behind it, as --refine and --filter do.
void add_file_with_options(std::string_view option, const std::string& text, FileRoles& files);
// The file of a database and what SQLite keeps beside it.
enum class DatabaseUse { kRead, kWrite };
void add_database_files(std::string_view option, const std::string& where, DatabaseUse use,
                        FileRoles& files);
// What is written when a model is compiled: the library and, if wanted, the header beside it.
void add_outputs(const std::string& output, bool header, FileRoles& files);
void add_build_files(const BuildOptionTexts& texts, DatabaseUse use, FileRoles& files);
void add_model_run_files(const ModelRunTexts& texts, FileRoles& files);

}  // namespace hone::tool
