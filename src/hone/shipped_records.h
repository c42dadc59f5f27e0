// shipped_records.h - the records that come with Hone: the best schedules of some models, one file
// of JSON lines per instruction set (data/records), made by scripts/make_shipped_records.py. They
// are looked for beside the program, then where Hone was installed.
#pragma once

#include <string>
#include <vector>

#include "hone/db/record.h"
#include "hone/target/target.h"

namespace hone {

// The folder with the files; "" if there is none.
[[nodiscard]] std::string shipped_folder();
// "avx512.jsonl"
[[nodiscard]] std::string shipped_file_name(const target::Target& target);
// Those of the target's instruction set, else of all others; empty if the folder has no files. A
// broken file is an error.
[[nodiscard]] Result<std::vector<db::Record>> shipped_records(const target::Target& target,
                                                              const std::string& folder);

}  // namespace hone
