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
// Returns the stream for the report of a command that wrote a file: standard output, or standard
// error if the file is what standard output leads to, as with /dev/stdout and a pipe. The report
// must not become a part of that file. A device such as /dev/null keeps nothing and does not count.
[[nodiscard]] std::FILE* report_output(const std::string& written_file);

}  // namespace hone::tool
