// ir/passes/store_nest.h - one store with the unrolled and vectorized loops around it.
#pragma once

#include <functional>
#include <optional>

#include "hone/ir/stmt.h"

namespace hone::ir {

// The unrolled and vectorized loops and the guards around one store, outermost first.
struct StoreNest {
  std::vector<Stmt> around;
  Stmt store;
};

[[nodiscard]] bool is_unrolled(const Stmt& s);
// Returns the nest; nothing if a loop inside is serial, or if there is more than one statement.
[[nodiscard]] std::optional<StoreNest> store_nest_of(const Stmt& s);
[[nodiscard]] Stmt to_stmt(const StoreNest& nest);
// Calls `change` for each nest that begins with an unrolled loop, unless it is part of another
// nest.
[[nodiscard]] Stmt rewrite_nests(const Stmt& s, const std::function<void(StoreNest&)>& change);

// Returns whether iterations of the loop store to different elements for all values of the other
// loops' variables: some index depends on no other loop of the nest.
[[nodiscard]] bool stores_apart(const StoreNest& nest, const Stmt& loop);

}  // namespace hone::ir
