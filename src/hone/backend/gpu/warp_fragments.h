// backend/gpu/warp_fragments.h - the fragments of a phase that the lanes of a warp have together,
// and their form in which each lane has its own elements (matrix_layout.h).
#pragma once

#include <map>

#include "hone/ir/visit.h"

namespace hone::backend::gpu {

// A fragment that the lanes of warps have together.
struct Fragment {
  ir::BufferPtr spread;  // its form with a dimension of lanes
  size_t owned = 0;      // leading dimensions that say which warp's an element is
  bool rows = false;     // it has rows
  bool matrix = false;   // it has rows and columns
  bool lanes = false;    // each lane has elements of its own, and the warp reduces them
  // The dimensions in the fragment itself.
  [[nodiscard]] size_t row(size_t rank) const { return rank - (matrix ? 2 : 1); }
};
using Fragments = std::map<const ir::Buffer*, Fragment>;  // looked up only

// Finds the fragments that warps access outside of loops over lanes. One has rows alone if its last
// dimension but one has one element, and neither if it has one element in all, of which each lane
// has a copy. One whose rows or columns are no multiples of a tile has no form.
[[nodiscard]] Fragments find_fragments(const ir::StmtNode& phase);

// Calls f(buffer, indices) for each access of a statement and below.
template <typename F>
void for_each_access(const ir::StmtNode& statement, const F& f) {
  ir::for_each_stmt(statement, [&](const ir::StmtNode& s) {
    if (s.kind == ir::StmtKind::kStore) f(s.buffer, s.indices);
    for (const ir::Box& box : s.boxes) f(box.buffer, box.indices);
    ir::for_each_expr(s, [&](const ir::Expr& e) {
      ir::visit(e, [&](const ir::Expr& n) {
        if (n->op == ir::Op::kLoad) f(n->buffer, n->args);
      });
    });
  });
}

}  // namespace hone::backend::gpu
