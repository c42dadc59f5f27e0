#include "hone/ir/passes/gpu/thread_access.h"

#include <algorithm>
#include <array>

#include "hone/ir/scalar.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

using CanonicalVars = std::array<VarPtr, kMaxAccessDims>;
CanonicalVars make_vars(const std::string& name) {
  CanonicalVars made;
  for (size_t i = 0; i < kMaxAccessDims; ++i) made[i] = make_var(name + std::to_string(i));
  return made;
}
// The variables that stand for the elements of a box in some dimension, in all accesses.
const VarPtr& canonical_element_var(size_t dimension) {
  static const CanonicalVars vars = make_vars("element");
  return vars[dimension];
}

class Collector {
 public:
  Collector(const SharedBuffers& buffers, std::vector<ThreadAccess>& accesses)
      : buffers_(buffers), accesses_(accesses) {}

  void statement(const StmtNode& s, bool together) {
    for_each_expr(s, [&](const Expr& whole) {
      visit(whole, [&](const Expr& e) {
        if (e->op == Op::kLoad) add(e->buffer, e->args, false, s.async, together);
      });
    });
    if (s.kind == StmtKind::kStore) add(s.buffer, s.indices, true, s.async, together);
    for (size_t b = 0; b < s.boxes.size(); ++b) box(s, s.boxes[b], b == 0);
    for (const BufferPtr& buffer : s.buffers) {
      const std::vector<Expr> anywhere(buffer->shape.size());
      add(buffer, anywhere, true, false, true);
    }
    if (s.kind != StmtKind::kFor) return children(s, together);
    const auto mark = ranges_.mark();
    ranges_.bind_loop(s.var, s.min, s.extent);
    if (is_thread_loop(s.for_kind)) {
      loops_.push_back(&s);
      children(s, s.for_kind == ForKind::kWarp);
      loops_.pop_back();
    } else {
      inner_.emplace_back(s.var, ranges_.of(s.var));
      children(s, together);
      inner_.pop_back();
    }
    ranges_.reset(mark);
  }

 private:
  void children(const StmtNode& s, bool together) {
    for (const Stmt& child : s.body) statement(*child, together);
  }
  void box(const StmtNode& s, const Box& b, bool stores) {
    const size_t inner = inner_.size();
    std::vector<Expr> index;
    for (size_t d = 0; d < b.indices.size(); ++d) {
      index.push_back(d < kMaxAccessDims ? b.indices[d] : nullptr);
      if (b.extents[d] == 1 || d >= kMaxAccessDims) continue;
      inner_.emplace_back(canonical_element_var(d), Interval{0, b.extents[d] - 1});
      index.back() = index.back() + variable(inner_.back().first);
    }
    add(b.buffer, index, stores, s.async, true);
    inner_.resize(inner);
  }
  void add(const BufferPtr& buffer, const std::vector<Expr>& index, bool stores, bool async,
           bool together) {
    if (!buffers_.contains(buffer)) return;
    ThreadAccess made{.buffer = buffer.get(), .stores = stores, .async = async};
    made.nest = thread_nest(loops_);
    made.together = together || made.nest.dims.size() > kMaxAccessDims;
    VarMap names;
    for (size_t i = 0; i < made.nest.dims.size() && i < kMaxAccessDims; ++i) {
      names.emplace_back(made.nest.dims[i].var, variable(canonical_thread_var(i)));
      made.nest.dims[i].var = canonical_thread_var(i);
    }
    for (const Expr& e : index) made.index.push_back(e ? canonical_index(substitute(e, names)) : e);
    made.inner = inner_;
    const auto same = [&](const ThreadAccess& other) { return equal(made, other); };
    if (std::none_of(accesses_.begin(), accesses_.end(), same))
      accesses_.push_back(std::move(made));
  }

  const SharedBuffers& buffers_;
  std::vector<ThreadAccess>& accesses_;
  std::vector<const StmtNode*> loops_;
  std::vector<std::pair<VarPtr, Interval>> inner_;
  Ranges ranges_;
};

}  // namespace

const VarPtr& canonical_thread_var(size_t depth) {
  static const CanonicalVars vars = make_vars("thread");
  return vars[depth];
}

bool equal(const ThreadAccess& a, const ThreadAccess& b) {
  const auto same_index = [](const Expr& x, const Expr& y) {
    return x && y ? equal(x, y) : x == y;
  };
  return a.buffer == b.buffer && a.stores == b.stores && a.async == b.async &&
         a.together == b.together && a.nest.same_threads(b.nest) && a.inner == b.inner &&
         std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(), same_index);
}

SharedBuffers::SharedBuffers(const StmtNode& phase) {
  for_each_stmt(phase, [&](const StmtNode& s) {
    if (s.kind == StmtKind::kStore) stored_.push_back(s.buffer.get());
    if (!s.boxes.empty()) stored_.push_back(s.boxes[0].buffer.get());
    for (const BufferPtr& b : s.buffers) stored_.push_back(b.get());
  });
}

bool SharedBuffers::contains(const BufferPtr& buffer) const {
  const bool is_shared = buffer->scope == Scope::kShared || buffer->scope == Scope::kGlobal;
  return is_shared && std::find(stored_.begin(), stored_.end(), buffer.get()) != stored_.end();
}

void add_accesses(const StmtNode& s, const SharedBuffers& buffers, bool together,
                  std::vector<ThreadAccess>& accesses) {
  Collector(buffers, accesses).statement(s, together);
}

Expr canonical_index(const Expr& e) {
  const Expr made = rewrite(e, [](const Expr& node) -> Expr {
    const bool divides = node->op == Op::kFloorDiv || node->op == Op::kFloorMod;
    if (!divides || node->type != DType::kI64 || !is_const_int(node->args[1])) return nullptr;
    Linear number = linearize(node->args[0]);
    const int64_t d = node->args[1]->int_value;
    if (node->op == Op::kFloorMod && d > 0) number.constant = floor_mod(number.constant, d);
    return make(node->op, {to_expr(number), node->args[1]});
  });
  return to_expr(linearize(made));
}

}  // namespace hone::ir
