#include "hone/backend/gpu/block_shape.h"

#include <algorithm>
#include <set>

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
bool has_thread_loop(const StmtNode& s) {
  return std::any_of(s.body.begin(), s.body.end(), [](const Stmt& child) {
    return ir::any_stmt(*child, [](const StmtNode& n) { return is_thread_loop(n); });
  });
}
bool is_private(Scope scope) {
  return scope == Scope::kThread || scope == Scope::kStack || scope == Scope::kRegister;
}

class Analysis {
 public:
  Result<BlockShape> run(const ir::Phase& phase) && {
    shape_.threads = threads_of(*phase.body);
    check_kinds(*phase.body);
    statement(*phase.body);
    if (!status_.ok()) return status_;
    return std::move(shape_);
  }

 private:
  template <typename... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (status_.ok()) status_ = error(Code::kUnsupported, format, std::forward<Args>(args)...);
  }

  // Whether the statements here are run by one thread each.
  bool is_for_one_thread() const { return alone_ || shape_.threads == 1; }

  void statement(const StmtNode& s) {
    ir::for_each_expr(s, [&](const ir::Expr& e) { expression(e); });
    switch (s.kind) {
      case StmtKind::kFor: return loop(s);
      case StmtKind::kAlloc: return alloc(s);
      case StmtKind::kStore: return store(s);
      case StmtKind::kBarrier:
        if (!loops_.empty() && !s.warp) fail("a barrier of the block inside a loop over threads");
        if (loops_.empty() && s.warp) fail("a barrier of a warp outside of a loop over warps");
        return;
      case StmtKind::kIf:
      case StmtKind::kBlock: return all(s.body);
      default: return;
    }
  }
  void check_kinds(const StmtNode& phase) {
    ir::for_each_stmt(phase, [&](const StmtNode& s) {
      switch (s.kind) {
        case StmtKind::kExtern: return fail("the function {} has no code for GPUs", s.name);
        case StmtKind::kMatrix: return fail("there is no code for matrix instructions yet");
        case StmtKind::kBoxCopy:
        case StmtKind::kArrive:
        case StmtKind::kAwait: return fail("there is no code for signals yet");
        case StmtKind::kRoles: return fail("there is no code for roles of warps yet");
        default: return;
      }
    });
  }
  void all(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) statement(*s);
  }

  void loop(const StmtNode& s) {
    if (!is_thread_loop(s)) return all(s.body);
    const int64_t inside = threads_of_iteration(s);
    if (s.for_kind == ForKind::kWarp && inside != kWarpSize)
      fail("a warp of {} threads, expected {} at most", inside, kWarpSize);
    for (const Stmt& child : s.body) same_threads(*child, s, inside);
    const bool was_alone = std::exchange(alone_, !has_thread_loop(s));
    loops_.push_back(&s);
    all(s.body);
    loops_.pop_back();
    alone_ = was_alone;
  }
  // The numbers of threads follow from the nest, so that nests side by side in one loop over
  // threads have to span as many.
  void same_threads(const StmtNode& s, const StmtNode& around, int64_t inside) {
    if (is_thread_loop(s)) {
      const int64_t found = threads_of(s);
      if (found != inside && around.for_kind != ForKind::kWarp)
        fail("loops of {} and {} threads stand in the loop {} over threads", inside, found,
             around.var->name);
      return;
    }
    for (const Stmt& child : s.body) same_threads(*child, around, inside);
  }

  void alloc(const StmtNode& s) {
    const ir::Buffer& b = *s.buffer;
    switch (b.scope) {
      case Scope::kShared:
        if (!loops_.empty()) return fail("{} is shared, but allocated by one thread", b.name);
        shape_.shared.push_back(s.buffer);
        shape_.shared_bytes += shared_size(b);
        return all(s.body);
      case Scope::kSignal: return fail("there is no code for signals yet");
      case Scope::kGlobal:
        if (shape_.threads > 1)
          return fail("{} is global memory that a block of threads allocates", b.name);
        break;
      case Scope::kFragment: {
        if (!loops_.empty()) return fail("the fragment {} is allocated by one thread", b.name);
        break;
      }
      default: break;
    }
    if (is_private(b.scope) && is_for_one_thread()) of_one_thread_.insert(&b);
    // A fragment counts when it is known how much of it a thread owns.
    const int64_t outer = private_bytes_;
    const int64_t bytes = b.bytes() / (b.scope == Scope::kFragment ? owners(s) : 1);
    private_bytes_ += bytes;
    shape_.private_bytes = std::max(shape_.private_bytes, private_bytes_);
    all(s.body);
    private_bytes_ = outer;
    of_one_thread_.erase(&b);
  }
  // The product of the dimensions of a fragment that say whose an element is.
  int64_t owners(const StmtNode& s) {
    size_t depth = 0;
    find_depth(s, s.buffer.get(), 0, depth);
    shape_.owned[s.buffer.get()] = depth;
    int64_t product = 1;
    for (size_t d = 0; d < std::min(depth, s.buffer->shape.size()); ++d)
      product *= std::max<int64_t>(s.buffer->shape[d], 1);
    return product;
  }
  // The number of loops over threads around the first access of a buffer.
  static bool find_depth(const StmtNode& s, const ir::Buffer* b, size_t depth, size_t& found) {
    if (s.kind == StmtKind::kStore && s.buffer.get() == b) return found = depth, true;
    bool loads = false;
    ir::for_each_expr(s, [&](const ir::Expr& e) {
      ir::visit(e, [&](const ir::Expr& n) { loads = loads || n->buffer.get() == b; });
    });
    if (loads) return found = depth, true;
    depth += is_thread_loop(s) ? 1 : 0;
    return std::any_of(s.body.begin(), s.body.end(),
                       [&](const Stmt& child) { return find_depth(*child, b, depth, found); });
  }

  void store(const StmtNode& s) {
    access(s.buffer, s.indices);
    const Scope scope = s.buffer->scope;
    if (is_for_one_thread()) {
      if (is_private(scope) && !of_one_thread_.contains(s.buffer.get()))
        fail(
            "a thread changes {}, which stands outside of the loops over threads and is no fragment",
            s.buffer->name);
    } else if (!loops_.empty() && loops_.back()->for_kind == ForKind::kWarp) {
      fail("there is no code for what a warp stores together yet");
    } else if (!is_private(scope)) {
      fail("all threads of the block store to {}, expected a loop over threads", s.buffer->name);
    }
  }
  void expression(const ir::Expr& e) {
    ir::visit(e, [&](const ir::Expr& n) {
      if (n->op == ir::Op::kLoad) access(n->buffer, n->args);
    });
  }
  // The leading indices of a fragment are the loops over threads around.
  void access(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices) {
    if (buffer->scope != Scope::kFragment) return;
    const size_t depth = shape_.owned[buffer.get()];
    bool own = depth == loops_.size() && indices.size() >= depth;
    for (size_t d = 0; own && d < depth; ++d) {
      own = indices[d]->op == ir::Op::kVar && indices[d]->var == loops_[d]->var &&
            ir::is_const_int(loops_[d]->min, 0) &&
            ir::is_const_int(loops_[d]->extent, buffer->shape[d]);
    }
    if (!own)
      fail("the fragment {} is not indexed by the loops over threads around, outermost first",
           buffer->name);
  }

  BlockShape shape_;
  Status status_;
  std::vector<const StmtNode*> loops_;  // over threads, around what is visited
  bool alone_ = false;                  // inside the innermost loop over threads
  std::set<const ir::Buffer*> of_one_thread_;
  int64_t private_bytes_ = 0;
};

}  // namespace

int64_t threads_of(const StmtNode& s) {
  if (is_thread_loop(s)) return s.extent->int_value * threads_of_iteration(s);
  int64_t most = 1;
  for (const Stmt& child : s.body) most = std::max(most, threads_of(*child));
  return most;
}

int64_t threads_of_iteration(const StmtNode& loop) {
  int64_t most = loop.for_kind == ForKind::kWarp ? kWarpSize : 1;
  for (const Stmt& child : loop.body) most = std::max(most, threads_of(*child));
  return most;
}

int64_t shared_size(const ir::Buffer& buffer) {
  return (std::max<int64_t>(buffer.bytes(), 1) + 15) / 16 * 16;
}

Result<BlockShape> block_shape(const ir::Phase& phase) { return Analysis().run(phase); }

}  // namespace hone::backend::gpu
