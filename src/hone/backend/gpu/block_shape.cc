#include "hone/backend/gpu/block_shape.h"

#include <algorithm>

#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/visit.h"

namespace hone::backend::gpu {
namespace {

using ir::ForKind;
using ir::Scope;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

bool is_thread_loop(const StmtNode& s) {
  return s.kind == StmtKind::kFor && ir::is_thread_loop(s.for_kind);
}
// Returns why there is no code for a statement; null if there is.
const char* missing_code(const StmtNode& s, Dialect dialect) {
  switch (s.kind) {
    case StmtKind::kExtern: return "there is no code for functions";
    case StmtKind::kMatrix:
      if (dialect == Dialect::kCuda) break;
      return "there is no code for matrix instructions in OpenCL C";
    case StmtKind::kBoxCopy:
    case StmtKind::kArrive:
    case StmtKind::kAwait: return "there is no code for signals yet";
    case StmtKind::kRoles: return "there is no code for roles of warps yet";
    default: break;
  }
  if (s.kind != StmtKind::kFor || s.for_kind != ForKind::kWarp || dialect == Dialect::kCuda)
    return nullptr;
  const bool lanes_only = std::all_of(s.body.begin(), s.body.end(), [](const Stmt& child) {
    return child->kind == StmtKind::kBarrier ||
           (child->kind == StmtKind::kFor && ir::is_thread_loop(child->for_kind));
  });
  return lanes_only ? nullptr : "there is no code for what a warp does together in OpenCL C";
}

// Finds the number of loops over threads around the first access of a buffer, from `depth` on.
bool find_depth(const StmtNode& s, const ir::Buffer* b, size_t depth, size_t& found) {
  // What lanes give to a matrix instruction is theirs.
  const bool in_box = std::any_of(s.boxes.begin(), s.boxes.end(),
                                  [&](const ir::Box& box) { return box.buffer.get() == b; });
  if (in_box) return found = depth + 1, true;
  bool accesses = s.kind == StmtKind::kStore && s.buffer.get() == b;
  ir::for_each_expr(s, [&](const ir::Expr& e) {
    ir::visit(e, [&](const ir::Expr& n) { accesses = accesses || n->buffer.get() == b; });
  });
  if (accesses) return found = depth, true;
  depth += is_thread_loop(s) ? 1 : 0;
  return std::any_of(s.body.begin(), s.body.end(),
                     [&](const Stmt& child) { return find_depth(*child, b, depth, found); });
}

class Analysis {
 public:
  Result<BlockShape> run(const StmtNode& body) && {
    shape_.threads = threads_of(body);
    statement(body);
    HONE_RETURN_IF_ERROR(status_);
    return std::move(shape_);
  }

 private:
  void statement(const StmtNode& s) {
    if (s.kind == StmtKind::kAlloc) return alloc(s);
    for (const Stmt& child : s.body) statement(*child);
  }

  void alloc(const StmtNode& s) {
    const ir::Buffer& b = *s.buffer;
    int64_t bytes = b.bytes();
    if (b.scope == Scope::kShared) {
      // A pass may have copied the allocation: one is in use at a time.
      if (std::find(shape_.shared.begin(), shape_.shared.end(), s.buffer) == shape_.shared.end()) {
        shape_.shared.push_back(s.buffer);
        shape_.shared_bytes += shared_size(b);
      }
      bytes = 0;
    } else if (b.scope == Scope::kFragment) {
      bytes /= owners(s);
    } else if (b.scope == Scope::kGlobal && shape_.threads > 1 && status_.ok()) {
      status_ =
          error(Code::kUnsupported, "there is no code for {}, global memory of a block", b.name);
    }
    private_bytes_ += bytes;
    shape_.private_bytes = std::max(shape_.private_bytes, private_bytes_);
    for (const Stmt& child : s.body) statement(*child);
    private_bytes_ -= bytes;
  }
  // Returns the product of the dimensions of a fragment that say whose an element is.
  int64_t owners(const StmtNode& s) {
    size_t depth = 0;
    find_depth(s, s.buffer.get(), 0, depth);
    shape_.owned[s.buffer.get()] = depth;
    int64_t product = 1;
    for (size_t d = 0; d < std::min(depth, s.buffer->shape.size()); ++d)
      product *= std::max<int64_t>(s.buffer->shape[d], 1);
    return product;
  }

  BlockShape shape_;
  Status status_;
  int64_t private_bytes_ = 0;  // arrays of a thread that live where it is
};

}  // namespace

int64_t threads_of(const StmtNode& s) {
  if (is_thread_loop(s)) return s.extent->int_value * threads_of_iteration(s);
  int64_t most = 1;
  for (const Stmt& child : s.body) most = std::max(most, threads_of(*child));
  return most;
}

int64_t threads_of_iteration(const StmtNode& loop) {
  int64_t most = loop.for_kind == ForKind::kWarp ? ir::kWarpThreads : 1;
  for (const Stmt& child : loop.body) most = std::max(most, threads_of(*child));
  return most;
}

int64_t shared_size(const ir::Buffer& buffer) {
  return (std::max<int64_t>(buffer.bytes(), 1) + 15) / 16 * 16;
}

Status check_statements(const StmtNode& body, Dialect dialect) {
  Status status;
  ir::for_each_stmt(body, [&](const StmtNode& s) {
    if (const char* missing = missing_code(s, dialect); missing != nullptr && status.ok())
      status = {Code::kUnsupported, missing};
  });
  return status;
}

Result<BlockShape> block_shape(const StmtNode& body) { return Analysis().run(body); }

}  // namespace hone::backend::gpu
