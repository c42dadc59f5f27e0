#include "hone/ir/equivalent.h"

#include <bit>
#include <utility>

namespace hone::ir {
namespace {

// Pairs of things that correspond, innermost last; both ways must agree.
template <typename T>
class Pairing {
 public:
  void push(const T& a, const T& b) { pairs_.emplace_back(a, b); }
  void pop() { pairs_.pop_back(); }
  bool same(const T& a, const T& b) const {
    for (auto it = pairs_.rbegin(); it != pairs_.rend(); ++it) {
      if (it->first == a || it->second == b) return it->first == a && it->second == b;
    }
    return a == b;
  }

 private:
  std::vector<std::pair<T, T>> pairs_;
};

bool same_type(const Buffer& a, const Buffer& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.scope == b.scope && a.values == b.values;
}

class Comparer {
 public:
  bool programs(const Program& a, const Program& b) {
    if (a.name != b.name || a.params.size() != b.params.size() ||
        a.phases.size() != b.phases.size())
      return false;
    for (size_t i = 0; i < a.params.size(); ++i) {
      const Param &p = a.params[i], &q = b.params[i];
      if (p.role != q.role || !same_type(*p.buffer, *q.buffer)) return false;
      buffers_.push(p.buffer, q.buffer);
    }
    for (size_t i = 0; i < a.phases.size(); ++i) {
      if (a.phases[i].prepare != b.phases[i].prepare ||
          !statement(*a.phases[i].body, *b.phases[i].body))
        return false;
    }
    return true;
  }

 private:
  bool expression(const Expr& a, const Expr& b) {
    if (!a || !b) return !a && !b;
    if (a->op != b->op || a->type != b->type || a->int_value != b->int_value ||
        std::bit_cast<uint64_t>(a->float_value) != std::bit_cast<uint64_t>(b->float_value)) {
      return false;
    }
    return vars_.same(a->var, b->var) && buffers_.same(a->buffer, b->buffer) &&
           expressions(a->args, b->args);
  }
  bool expressions(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!expression(a[i], b[i])) return false;
    }
    return true;
  }
  bool boxes(const Box& a, const Box& b) {
    return buffers_.same(a.buffer, b.buffer) && expressions(a.indices, b.indices) &&
           a.extents == b.extents && a.transposed == b.transposed;
  }
  bool statement(const StmtNode& a, const StmtNode& b) {
    const bool same_node = a.kind == b.kind && a.for_kind == b.for_kind && a.peel == b.peel &&
                           a.name == b.name && expression(a.min, b.min) &&
                           expression(a.extent, b.extent) && expression(a.condition, b.condition) &&
                           a.buffers.size() == b.buffers.size() && a.body.size() == b.body.size() &&
                           a.cache == b.cache && a.async == b.async && a.warp == b.warp &&
                           a.count == b.count && a.warps == b.warps &&
                           a.boxes.size() == b.boxes.size();
    if (!same_node) return false;
    for (size_t i = 0; i < a.boxes.size(); ++i) {
      if (!boxes(a.boxes[i], b.boxes[i])) return false;
    }
    for (size_t i = 0; i < a.buffers.size(); ++i) {
      if (!buffers_.same(a.buffers[i], b.buffers[i])) return false;
    }
    const bool is_for = a.kind == StmtKind::kFor, is_alloc = a.kind == StmtKind::kAlloc;
    if (is_alloc && !same_type(*a.buffer, *b.buffer)) return false;
    if (is_for) vars_.push(a.var, b.var);
    if (is_alloc) buffers_.push(a.buffer, b.buffer);
    bool same = buffers_.same(a.buffer, b.buffer) && expressions(a.indices, b.indices) &&
                expression(a.value, b.value);
    for (size_t i = 0; same && i < a.body.size(); ++i) same = statement(*a.body[i], *b.body[i]);
    if (is_for) vars_.pop();
    if (is_alloc) buffers_.pop();
    return same;
  }

  Pairing<VarPtr> vars_;
  Pairing<BufferPtr> buffers_;
};

}  // namespace

bool equivalent(const Program& a, const Program& b) { return Comparer().programs(a, b); }

}  // namespace hone::ir
