// db/store_address.h - what the value of --db names: a file or a server (is_server() and
// store_name() in db/registry.h). What looks like an address but is none is refused, as it may hold
// a password and would otherwise be the name of a file.
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone::db {

// A store that is gone when it is closed, for open_store() in a program of one's own. Whoever gives
// it to a command would lose what that measures, so check_address() refuses it.
inline constexpr const char* kMemory = ":memory:";

// Refuses a misspelt address ("Postgres://", "host=... password=..."), one whose password is not
// encoded as an address asks for, and names that mean something else than a file to SQLite
// (":memory:", "file:x.db"). No message repeats the value. A path with a slash before anything
// else, such as "./file:x.db", is always the name of a file.
[[nodiscard]] Status check_address(std::string_view where);
// The same address with its password hidden, of the same length: for lists of processes.
[[nodiscard]] std::string without_password(std::string_view where);

}  // namespace hone::db
