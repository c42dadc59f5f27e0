// shipped_records.h - the records that come with Hone: the best schedules of some models, a file of
// JSON lines per instruction set (data/records), made by scripts/make_shipped_records.py. They are
// looked for beside the program, then where Hone was installed. Only what a transfer needs is kept
// of a record; its task is given by class and shape.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hone/db/trial_store.h"
#include "hone/target/target.h"

namespace hone {

// The folder with the files; "" if there is none.
[[nodiscard]] std::string shipped_folder();
// Records of the target's instruction set, else of all others; empty if the folder has no files. A
// broken file is an error.
[[nodiscard]] Result<std::vector<trial::Record>> shipped_records(const target::Target& target,
                                                                 const std::string& folder);

// One object a line; blank lines are skipped. Strict: an unknown or missing field is an error that
// begins with `name` and the line's number.
[[nodiscard]] Result<std::vector<trial::Record>> parse_shipped(std::string_view text,
                                                               std::string_view name);
[[nodiscard]] std::string to_shipped_line(const trial::Record& record);

// Of each task, device and number of threads the fastest verified record, and the fastest of each
// other algorithm that is hardly slower: as file names ("avx512.jsonl") with their texts. The same
// records give the same texts.
[[nodiscard]] Result<std::map<std::string, std::string>> make_shipped_files(db::TrialStore& store);

}  // namespace hone
