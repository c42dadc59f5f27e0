// schedule/block_statements.h - how bodies that a block of a GPU runs are written: loops over
// threads, and variables of a thread (internal to schedule).
#pragma once

#include <vector>

#include "hone/ir/stmt.h"

namespace hone::schedule {

using Stmts = std::vector<ir::Stmt>;

inline constexpr int64_t kJoiners = 16;  // threads that join what all threads have

inline ir::Expr number(int64_t n) { return ir::constant(n); }

// Makes a loop over the first threads of a block.
template <typename F>
[[nodiscard]] ir::Stmt on_threads(int64_t threads, const F& body) {
  const ir::VarPtr t = ir::make_var("t");
  return ir::make_for(t, number(0), number(threads), ir::ForKind::kThread, body(ir::variable(t)));
}

// Makes a loop of so many iterations.
template <typename F>
[[nodiscard]] ir::Stmt repeat(int64_t times, ir::ForKind kind, const F& body) {
  const ir::VarPtr j = ir::make_var("j");
  return ir::make_for(j, number(0), number(times), kind, body(ir::variable(j)));
}

// A variable of a thread.
struct OwnValue {
  OwnValue(const char* name, DType type)
      : buffer(ir::make_buffer(name, type, {}, ir::Scope::kStack)) {}
  ir::BufferPtr buffer;
  [[nodiscard]] ir::Expr get() const { return ir::load(buffer, {}); }
  [[nodiscard]] ir::Stmt set(const ir::Expr& value) const {
    return ir::make_store(buffer, {}, value);
  }
};

// Returns the statements inside the allocations of what they use.
[[nodiscard]] inline Stmts with(const std::vector<ir::BufferPtr>& buffers, Stmts body) {
  for (const ir::BufferPtr& one : buffers) body = {ir::make_alloc(one, std::move(body))};
  return body;
}

}  // namespace hone::schedule
