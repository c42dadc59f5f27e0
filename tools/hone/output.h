// tools/hone/output.h - what the commands print to standard output goes through a filter, so that
// names from models, records and files cannot reach the terminal as commands to it
// (base/printable.h).
#pragma once

#include <cstdio>
#include <string>

namespace hone::tool {

// A stream that writes all but hidden characters to this descriptor and escapes those: bytes below
// 0x7f and those that are not UTF-8 as \x1b, others as \u202e. The latter is how JSON escapes them,
// too, and nothing else remains to be escaped in JSON, so a reader of --json gets the same strings.
// Line ends stay. A terminal gets it line by line. Null if there is no memory.
[[nodiscard]] std::FILE* filtered_output(int descriptor);
// Standard output, or standard error if a file that the user named is where standard output goes
// to, as with /dev/stdout and a pipe: what is printed must not become a part of it. A device, as
// /dev/null, keeps nothing.
[[nodiscard]] std::FILE* report_output(const std::string& written_file);

}  // namespace hone::tool
