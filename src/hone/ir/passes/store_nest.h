// ir/passes/store_nest.h - one store and the loops around it that become straight code.
#pragma once

#include <functional>
#include <optional>

#include "hone/ir/stmt.h"

namespace hone::ir {

// Unrolled and vectorized loops and guards around one store, the outermost first.
struct StoreNest {
  std::vector<Stmt> around;
  Stmt store;
};

[[nodiscard]] bool is_unrolled(const Stmt& s);
// Nothing if a loop inside runs step by step, or there is more than one statement.
[[nodiscard]] std::optional<StoreNest> store_nest_of(const Stmt& s);
[[nodiscard]] Stmt to_stmt(const StoreNest& nest);
// `change` is called for each nest that an unrolled loop begins, unless it is part of another.
[[nodiscard]] Stmt rewrite_nests(const Stmt& s, const std::function<void(StoreNest&)>& change);

// Iterations of the loop store to different elements, whatever those of the loops around and inside
// are: some index depends on no other of the nest's loops.
[[nodiscard]] bool stores_apart(const StoreNest& nest, const Stmt& loop);

}  // namespace hone::ir
