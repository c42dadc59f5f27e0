// tools/hone/record_filter.h - which trials of a database a command is about: the options of
// `hone db show`, `best` and `export`.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "hone/database.h"

namespace hone::tool {

struct RecordFilterTexts {
  std::string task;     // 16 hexadecimal digits
  std::string kernel;   // a kernel class
  std::string device;   // its key, "host", or a name that can be compiled for
  std::string model;    // as the database names it
  std::string threads;  // all of them: empty: any
};

void add_record_filter(CLI::App& app, RecordFilterTexts& texts);
[[nodiscard]] Result<TrialFilter> parse_record_filter(const RecordFilterTexts& texts);

}  // namespace hone::tool
