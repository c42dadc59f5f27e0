// db/store_address.h - checks what the value of --db names: a file or a server (is_server() and
// store_name() in db/registry.h). A value that looks like an address but is none is refused, as it
// may contain a password and would otherwise become the name of a file.
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone::db {

// A store that is lost when it is closed, for programs that call open_store() themselves. A command
// would lose what it measures, so check_address() refuses it.
inline constexpr const char* kMemory = ":memory:";

// Refuses a misspelt address ("Postgres://", "host=... password=..."), one whose password is not
// percent-encoded, and names that SQLite does not take as files (":memory:", "file:x.db"). No
// message repeats the value. A path that begins with a directory, such as "./file:x.db", is always
// the name of a file.
[[nodiscard]] Status check_address(std::string_view where);
// Returns the address with its password hidden, at the same length, for lists of processes.
[[nodiscard]] std::string without_password(std::string_view where);

}  // namespace hone::db
