#include "hone/backend/gpu/warp_fragments.h"

#include "hone/backend/gpu/matrix_layout.h"
#include "hone/ir/gpu/thread_nest.h"

namespace hone::backend::gpu {
namespace {

// Returns the fragment's form, without its buffer if it has none.
Fragment spread_fragment(const ir::Buffer& b, size_t owned) {
  std::vector<int64_t> shape = b.shape;
  const size_t rank = shape.size();
  Fragment f = {nullptr, owned, rank > owned, rank > owned + 1 && shape[rank - 2] > 1};
  if (f.rows) {
    int64_t& m = shape[f.row(rank)];
    if (m % kTileRows != 0) return f;
    m /= kTileRows;
  }
  if (f.matrix) {
    int64_t& n = shape[rank - 1];
    if (n % kTileColumns != 0) return f;
    n = n / kTileColumns * kOwnColumns;
  }
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(owned), ir::kWarpThreads);
  f.spread = ir::make_buffer(b.name, b.dtype, std::move(shape), ir::Scope::kFragment);
  return f;
}

void find(const ir::StmtNode& s, size_t loops, bool warp, Fragments& found) {
  const auto note = [&](const ir::BufferPtr& b) {
    if (warp && b && b->scope == ir::Scope::kFragment && !found.contains(b.get()))
      found.emplace(b.get(), spread_fragment(*b, loops));
  };
  if (s.kind == ir::StmtKind::kStore) note(s.buffer);
  for (const ir::Box& box : s.boxes) note(box.buffer);
  ir::for_each_expr(s, [&](const ir::Expr& e) {
    ir::visit(e, [&](const ir::Expr& n) {
      if (n->op == ir::Op::kLoad) note(n->buffer);
    });
  });
  if (s.kind == ir::StmtKind::kFor && ir::is_thread_loop(s.for_kind)) {
    ++loops;
    warp = s.for_kind == ir::ForKind::kWarp;
  }
  for (const ir::Stmt& child : s.body) find(*child, loops, warp, found);
}

}  // namespace

Fragments find_fragments(const ir::StmtNode& phase) {
  Fragments found;
  find(phase, 0, false, found);
  return found;
}

}  // namespace hone::backend::gpu
