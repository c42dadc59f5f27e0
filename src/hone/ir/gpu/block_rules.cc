#include "hone/ir/gpu/block_rules.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "hone/ir/gpu/matrix_box.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Who runs a statement together.
enum class Level : uint8_t { kBlock, kRole, kWarp, kThread };

class Checker {
 public:
  explicit Checker(const StmtNode& phase) {
    for_each_stmt(phase, [&](const StmtNode& s) {
      if (s.kind == StmtKind::kStore) stored_.insert(s.buffer.get());
      if (!s.boxes.empty()) stored_.insert(s.boxes[0].buffer.get());
      for (const BufferPtr& buffer : s.buffers) stored_.insert(buffer.get());
    });
  }

  Status statement(const StmtNode& s, Level level) {
    HONE_RETURN_IF_ERROR(accesses(s, level));
    const bool of_block = level == Level::kBlock || level == Level::kRole;
    switch (s.kind) {
      case StmtKind::kFor: return is_thread_loop(s.for_kind) ? threads(s, level) : loop(s, level);
      case StmtKind::kIf:
        if (of_block) HONE_RETURN_IF_ERROR(uniform(s.condition, "a condition"));
        return statements(s.body, level);
      case StmtKind::kAlloc: return alloc(s, level);
      case StmtKind::kStore:
        if (level == Level::kBlock)
          return invalid("a store of {} outside of loops over threads", s.buffer->name);
        return s.async ? async_store(s, level) : ok_status();
      case StmtKind::kExtern:
        return level == Level::kThread ? ok_status()
                                       : invalid("extern {} outside of loops over threads", s.name);
      case StmtKind::kBarrier:
        if (s.warp == (level == Level::kWarp) && level != Level::kThread) return ok_status();
        return s.warp ? invalid("a barrier of a warp outside of loops over warps")
                      : invalid("a barrier inside of a loop over threads");
      case StmtKind::kCommit:
      case StmtKind::kWait:
        if (s.count < 0) return invalid("a wait for {} groups", s.count);
        return of_block ? ok_status() : invalid("commit or wait inside of a loop over threads");
      case StmtKind::kMatrix:
        if (level == Level::kThread) return invalid("a matrix statement of one thread");
        return check_matrix(s);
      case StmtKind::kBoxCopy: HONE_RETURN_IF_ERROR(check_box_copy(s)); [[fallthrough]];
      case StmtKind::kArrive:
      case StmtKind::kAwait: return signal(s, of_block);
      case StmtKind::kRoles: return roles(s, level);
      default: return statements(s.body, level);
    }
  }

 private:
  Status statements(const std::vector<Stmt>& body, Level level) {
    for (const Stmt& s : body) HONE_RETURN_IF_ERROR(statement(*s, level));
    return ok_status();
  }

  // Whether all threads of a block have the same value.
  Status uniform(const Expr& e, const char* what) const {
    Status status;
    visit(e, [&](const Expr& node) {
      if (node->op == Op::kVar && varying_.contains(node->var.get()))
        status = invalid("{} of a block depends on {}, which differs between threads", what,
                         node->var->name);
      if (node->op != Op::kLoad) return;
      if (node->buffer->scope != Scope::kGlobal || stored_.contains(node->buffer.get()))
        status =
            invalid("{} of a block loads {}, which the phase writes", what, node->buffer->name);
    });
    return status;
  }

  // The fragments and signals that the statement's own expressions and boxes access.
  Status accesses(const StmtNode& s, Level level) {
    Status status;
    for_each_expr(s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->op == Op::kLoad && status.ok())
          status = access(e->buffer, e->args, nullptr, level, true);
      });
    });
    if (s.kind == StmtKind::kStore && status.ok())
      status = access(s.buffer, s.indices, nullptr, level);
    for (const Box& box : s.boxes) {
      if (status.ok()) status = access(box.buffer, box.indices, &box.extents, level);
    }
    return status;
  }
  // Returns the loops over threads whose variables are the leading indices of an access.
  ThreadNest nest_of(const BufferPtr& buffer, bool is_load) const {
    ThreadNest nest = thread_nest(loops_);
    const auto owner = owners_.find(buffer.get());
    if (!is_load || owner == owners_.end() || owner->second.role != role_) return nest;
    const ThreadNest& own = owner->second.nest;
    // Each lane has what is one element of its warp.
    const bool has_one =
        std::all_of(buffer->shape.begin() + static_cast<std::ptrdiff_t>(own.dims.size()),
                    buffer->shape.end(), [](int64_t extent) { return extent == 1; });
    if (own.whole_warps && has_one && nest.same_warps(own)) {
      nest.dims.resize(own.dims.size());
      nest.whole_warps = true;
    }
    return nest;
  }

  Status access(const BufferPtr& buffer, const std::vector<Expr>& indices,
                const std::vector<int64_t>* extents, Level level, bool is_load = false) {
    if (buffer->scope == Scope::kSignal)
      return invalid("{} is accessed as data, but is a signal", buffer->name);
    if (buffer->scope != Scope::kFragment) return ok_status();
    const ThreadNest nest = nest_of(buffer, is_load);
    if (nest.dims.size() > indices.size())
      return invalid("fragment {} has fewer dimensions than there are loops over threads",
                     buffer->name);
    for (size_t d = 0; d < nest.dims.size(); ++d) {
      const ThreadDim& dim = nest.dims[d];
      const bool is_var = indices[d]->op == Op::kVar && indices[d]->var == dim.var;
      const bool is_first = dim.extent == 1 && is_const_int(indices[d], 0);
      if (!is_var && !is_first)
        return invalid("index {} of fragment {} is {}, expected {}", d, buffer->name,
                       print(indices[d]), dim.var->name);
      if (buffer->shape[d] != dim.extent || (extents != nullptr && (*extents)[d] != 1))
        return invalid("extent {} of fragment {} is {}, expected {}, the extent of {}", d,
                       buffer->name, buffer->shape[d], dim.extent, dim.var->name);
    }
    if (level == Level::kBlock && extents == nullptr)
      return invalid("an access to {} outside of loops over threads", buffer->name);
    const auto [it, added] = owners_.emplace(buffer.get(), Owner{nest, role_});
    const ThreadNest& own = it->second.nest;
    // A warp as a whole reads what its lanes have.
    const bool of_lanes = is_load && nest.whole_warps && !own.whole_warps && own.same_warps(nest);
    if (added || ((own.same_threads(nest) || of_lanes) && it->second.role == role_))
      return ok_status();
    return invalid("accesses to fragment {} give its elements to different threads", buffer->name);
  }

  Status loop(const StmtNode& s, Level level) {
    if (level == Level::kBlock || level == Level::kRole) {
      HONE_RETURN_IF_ERROR(uniform(s.min, "the start of a loop"));
      HONE_RETURN_IF_ERROR(uniform(s.extent, "the extent of a loop"));
      if (level == Level::kBlock && s.for_kind == ForKind::kVectorized)
        return invalid("vectorized loop {} outside of loops over threads", s.var->name);
    } else {
      varying_.insert(s.var.get());
    }
    return statements(s.body, level);
  }

  Status threads(const StmtNode& s, Level level) {
    if (!is_const_int(s.min, 0) || !is_const_int(s.extent))
      return invalid("loop {} over threads does not count from 0 to a constant", s.var->name);
    const bool continues = nest_inside_ == &s;
    const bool of_block = level == Level::kBlock || level == Level::kRole;
    const bool legal =
        s.for_kind == ForKind::kLane ? level == Level::kWarp || continues : of_block || continues;
    if (!legal && s.for_kind == ForKind::kLane)
      return invalid("loop {} over lanes outside of loops over warps", s.var->name);
    if (!legal)
      return invalid("loop {} over threads is not directly inside of the one around it",
                     s.var->name);
    loops_.push_back(&s);
    varying_.insert(s.var.get());
    HONE_RETURN_IF_ERROR(threads_fit(s));
    const StmtNode* const outer = nest_inside_;
    nest_inside_ = inner_loop(s);
    const Status status =
        statements(s.body, s.for_kind == ForKind::kWarp ? Level::kWarp : Level::kThread);
    nest_inside_ = outer;
    loops_.pop_back();
    return status;
  }
  Status threads_fit(const StmtNode& s) const {
    int64_t lanes = 1;
    for (const StmtNode* loop : loops_)
      lanes *= loop->for_kind == ForKind::kLane ? loop->extent->int_value : 1;
    if (lanes > kWarpThreads)
      return invalid("loop {} runs over {} lanes of {}", s.var->name, lanes, kWarpThreads);
    int64_t threads = loops_[0]->for_kind == ForKind::kWarp ? kWarpThreads : 1;
    for (const StmtNode* loop : loops_)
      threads *= loop->for_kind == ForKind::kLane ? 1 : loop->extent->int_value;
    return threads <= role_threads_ ? ok_status()
                                    : invalid("loop {} needs {} threads, expected {} at most",
                                              s.var->name, threads, role_threads_);
  }
  // The loop that continues the nest: it stands alone in the body, but for conditions.
  static const StmtNode* inner_loop(const StmtNode& s) {
    const StmtNode* at = &s;
    do {
      if (at->body.size() != 1) return nullptr;
      at = at->body[0].get();
    } while (at->kind == StmtKind::kIf);
    return at->kind == StmtKind::kFor && at->for_kind == s.for_kind ? at : nullptr;
  }

  Status alloc(const StmtNode& s, Level level) {
    const Scope scope = s.buffer->scope;
    const bool is_private =
        scope == Scope::kThread || scope == Scope::kStack || scope == Scope::kRegister;
    const bool legal = is_private                  ? level == Level::kThread
                       : scope == Scope::kFragment ? level == Level::kBlock || level == Level::kRole
                                                   : level == Level::kBlock;
    if (!legal)
      return invalid("{}, which is {}, is allocated {} of loops over threads", s.buffer->name,
                     scope_name(scope), level == Level::kThread ? "inside" : "outside");
    if (scope == Scope::kSignal && (s.count < 1 || s.buffer->dtype != DType::kI64))
      return invalid("signal {} needs the type i64 and one arrival at least", s.buffer->name);
    HONE_RETURN_IF_ERROR(statements(s.body, level));
    owners_.erase(s.buffer.get());
    return ok_status();
  }

  static Status async_store(const StmtNode& s, Level level) {
    const Expr& e = s.value->op == Op::kSelect ? s.value->args[1] : s.value;
    const bool zero_else =
        s.value->op != Op::kSelect ||
        (s.value->args[2]->op == Op::kFloat && s.value->args[2]->float_value == 0) ||
        is_const_int(s.value->args[2], 0);
    const bool copies = e->op == Op::kLoad && e->buffer->scope == Scope::kGlobal && zero_else &&
                        s.buffer->scope == Scope::kShared && level == Level::kThread;
    if (copies) return ok_status();
    return invalid(
        "an asynchronous store of {} does not copy an element of global memory to "
        "shared memory in a loop over threads",
        s.buffer->name);
  }

  Status signal(const StmtNode& s, bool of_block) const {
    if (!of_block)
      return invalid("a statement with signal {} inside of a loop over threads", s.buffer->name);
    if (s.buffer->scope != Scope::kSignal)
      return invalid("{} is {}, expected a signal", s.buffer->name, scope_name(s.buffer->scope));
    for (const Expr& i : s.indices) HONE_RETURN_IF_ERROR(uniform(i, "the index of a signal"));
    return s.value ? uniform(s.value, "the parity of a signal") : ok_status();
  }

  Status roles(const StmtNode& s, Level level) {
    if (level != Level::kBlock) return invalid("roles inside of roles or of loops over threads");
    const int64_t warps = std::accumulate(s.warps.begin(), s.warps.end(), int64_t{0});
    if (s.warps.empty() || *std::min_element(s.warps.begin(), s.warps.end()) < 1 ||
        warps * kWarpThreads > kMaxBlockThreads)
      return invalid("roles of {} warps, expected 1 to {}", warps, kMaxBlockThreads / kWarpThreads);
    for (size_t i = 0; i < s.body.size(); ++i) {
      role_ = static_cast<int>(i);
      role_threads_ = s.warps[i] * kWarpThreads;
      HONE_RETURN_IF_ERROR(statement(*s.body[i], Level::kRole));
    }
    role_ = -1;
    role_threads_ = kMaxBlockThreads;
    return ok_status();
  }

  struct Owner {
    ThreadNest nest;
    int role;
  };
  std::vector<const StmtNode*> loops_;       // over threads, around the statement
  const StmtNode* nest_inside_ = nullptr;    // the loop that may continue the nest
  std::set<const Buffer*> stored_;           // by the phase; looked up only
  std::set<const Var*> varying_;             // looked up only
  std::map<const Buffer*, Owner> owners_;    // of fragments; looked up only
  int role_ = -1;                            // the role that runs the statement, if any
  int64_t role_threads_ = kMaxBlockThreads;  // of the role, or of the block
};

}  // namespace

Status check_block_rules(const StmtNode& phase) {
  return Checker(phase).statement(phase, Level::kBlock);
}

}  // namespace hone::ir
