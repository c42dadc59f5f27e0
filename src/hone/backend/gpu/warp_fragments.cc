#include "hone/backend/gpu/warp_fragments.h"

#include <set>

#include "hone/backend/gpu/matrix_layout.h"
#include "hone/ir/gpu/thread_nest.h"

namespace hone::backend::gpu {
namespace {

// Returns the fragment's form, without its buffer if it has none.
Fragment spread_fragment(const ir::Buffer& b, size_t owned) {
  std::vector<int64_t> shape = b.shape;
  const size_t rank = shape.size();
  const bool has_several =
      std::any_of(shape.begin() + static_cast<std::ptrdiff_t>(std::min(owned, rank)), shape.end(),
                  [](int64_t extent) { return extent != 1; });
  Fragment f = {nullptr, owned, has_several, rank > owned + 1 && shape[rank - 2] > 1};
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

using Buffers = std::set<const ir::Buffer*>;  // looked up only

// Finds the fragments whose elements lanes store by themselves.
void find_of_lanes(const ir::StmtNode& s, bool lane, Buffers& found) {
  if (lane && s.kind == ir::StmtKind::kStore && s.buffer->scope == ir::Scope::kFragment)
    found.insert(s.buffer.get());
  lane = lane || (s.kind == ir::StmtKind::kFor && s.for_kind == ir::ForKind::kLane);
  for (const ir::Stmt& child : s.body) find_of_lanes(*child, lane, found);
}

void find(const ir::StmtNode& s, size_t loops, bool warp, const Buffers& of_lanes,
          Fragments& found) {
  const auto note = [&](const ir::BufferPtr& b) {
    if (!warp || !b || b->scope != ir::Scope::kFragment || found.contains(b.get())) return;
    found.emplace(b.get(), of_lanes.contains(b.get())
                               ? Fragment{.spread = b, .owned = loops, .lanes = true}
                               : spread_fragment(*b, loops));
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
  for (const ir::Stmt& child : s.body) find(*child, loops, warp, of_lanes, found);
}

}  // namespace

Fragments find_fragments(const ir::StmtNode& phase) {
  Fragments found;
  Buffers of_lanes;
  find_of_lanes(phase, false, of_lanes);
  find(phase, 0, false, of_lanes, found);
  return found;
}

}  // namespace hone::backend::gpu
