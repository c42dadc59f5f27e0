#include "hone/ir/gpu/thread_nest.h"

#include <algorithm>

#include "hone/ir/visit.h"

namespace hone::ir {

namespace {

bool same(const ThreadDim& a, const ThreadDim& b) {
  return a.extent == b.extent && a.stride == b.stride;
}

}  // namespace

bool ThreadNest::same_threads(const ThreadNest& other) const {
  return whole_warps == other.whole_warps &&
         std::equal(dims.begin(), dims.end(), other.dims.begin(), other.dims.end(), same);
}

bool ThreadNest::same_warps(const ThreadNest& warps) const {
  return !whole_warps && warps.whole_warps && dims.size() > warps.dims.size() &&
         std::equal(warps.dims.begin(), warps.dims.end(), dims.begin(), same);
}

ThreadNest thread_nest(const std::vector<const StmtNode*>& loops) {
  ThreadNest nest;
  for (const StmtNode* loop : loops) nest.dims.push_back({loop->var, loop->extent->int_value, 1});
  int64_t stride = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    const ForKind kind = loops[i]->for_kind;
    const bool inner_is_warp = i + 1 < loops.size() && loops[i + 1]->for_kind == ForKind::kWarp;
    if (kind == ForKind::kWarp && !inner_is_warp) stride = kWarpThreads;
    nest.dims[i].stride = stride;
    stride *= nest.dims[i].extent;
  }
  nest.whole_warps = !loops.empty() && loops.back()->for_kind == ForKind::kWarp;
  return nest;
}

bool is_gpu_code(const StmtNode& s) {
  return any_stmt(s, [](const StmtNode& node) {
    const bool of_gpu_memory =
        node.kind == StmtKind::kAlloc && node.buffer->scope >= Scope::kShared;
    return of_gpu_memory || node.async || node.kind >= StmtKind::kBarrier ||
           (node.kind == StmtKind::kFor && is_thread_loop(node.for_kind));
  });
}

int64_t block_threads(const StmtNode& phase) {
  int64_t most = 1;
  const auto inside = [&] {
    int64_t n = 1;
    for (const Stmt& child : phase.body) n = std::max(n, block_threads(*child));
    return n;
  };
  if (phase.kind == StmtKind::kRoles) {
    most = 0;
    for (const int warps : phase.warps) most += warps * kWarpThreads;
  } else if (phase.kind == StmtKind::kFor && phase.for_kind == ForKind::kWarp) {
    // Lanes are threads of the warp, however many of them a loop uses.
    most = phase.extent->int_value * std::max(inside(), kWarpThreads);
  } else if (phase.kind == StmtKind::kFor && phase.for_kind == ForKind::kThread) {
    most = phase.extent->int_value * inside();
  } else if (phase.kind == StmtKind::kFor && phase.for_kind == ForKind::kLane) {
    most = kWarpThreads;
  } else {
    most = inside();
  }
  return most;
}

}  // namespace hone::ir
