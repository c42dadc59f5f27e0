// db/store_to_add.h - opens a store for who adds to it. A file that does not exist is made when
// something is stored, and so is the folder of the default one: whoever fails before that leaves
// nothing behind.
#pragma once

#include "hone/db/registry.h"

namespace hone::db {

// Does what open_store() does, but refuses ":memory:", which would lose what is added. Until
// something is stored, a file that does not exist is an empty store, unless another process makes
// it.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store_to_add(std::string_view where);

}  // namespace hone::db
