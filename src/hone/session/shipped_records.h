// shipped_records.h - the records that come with Hone: the best schedules of some models, in a file
// of JSON lines per instruction set (data/records), which scripts/make_shipped_records.py writes.
// The files are looked for in the installation (base/installation.h). A record keeps only what a
// transfer needs; its task is given by class and shape.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hone/db/trial_store.h"
#include "hone/target/target.h"

namespace hone {

// Returns the folder with the files; "" if there is none.
[[nodiscard]] std::string shipped_folder();
// Returns the records of the target's instruction set; if there is no file for it, those of all
// others. The result is empty if the folder has no files. A broken file is an error.
[[nodiscard]] Result<std::vector<trial::Record>> shipped_records(const target::Target& target,
                                                                 const std::string& folder);

// Parses one object per line; blank lines are skipped. An unknown or missing field is an error,
// which begins with `name` and the number of the line.
[[nodiscard]] Result<std::vector<trial::Record>> parse_shipped(std::string_view text,
                                                               std::string_view name);
[[nodiscard]] std::string to_shipped_line(const trial::Record& record);

// Returns the files to ship: their names ("avx512.jsonl") with their texts. For each task, device
// and number of threads they have the fastest verified record, and that of the next algorithm if it
// is hardly slower. The same records give the same texts.
[[nodiscard]] Result<std::map<std::string, std::string>> make_shipped_files(db::TrialStore& store);

}  // namespace hone
