#include "hone/ir/program_hash.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "hone/base/hash.h"

namespace hone::ir {
namespace {

// Variables and buffers are numbered as they are met.
class Hasher {
 public:
  // `exact`: the order of integer sums and marks to peel count, too.
  explicit Hasher(bool exact = false, uint64_t seed = 0) : exact_(exact), state_(seed) {}
  void program(const Program& p) {
    add(p.params.size());
    for (const Param& param : p.params) {
      buffer(param.buffer);
      add(static_cast<uint64_t>(param.role));
    }
    add(p.phases.size());
    for (const Phase& phase : p.phases) {
      add(phase.prepare ? 1 : 0);
      stmt(phase.body);
    }
  }
  [[nodiscard]] uint64_t value() const { return state_; }

 private:
  void add(uint64_t word) { state_ = hash_combine(state_, word); }
  void text(std::string_view s) { add(hash_string(s)); }

  void var(const VarPtr& v) { add(vars_.emplace(v.get(), vars_.size()).first->second); }

  void buffer(const BufferPtr& b) {
    const auto [place, added] = buffers_.emplace(b.get(), buffers_.size());
    add(place->second);
    if (!added) return;
    add(static_cast<uint64_t>(b->dtype));
    add(static_cast<uint64_t>(b->scope));
    add(b->shape.size());
    for (const int64_t extent : b->shape) add(static_cast<uint64_t>(extent));
    add(b->values.size());
    for (const float v : b->values) add(std::bit_cast<uint32_t>(v));
  }

  void expr(const Expr& e) {
    if (!e) return add(0);
    if (e->op == Op::kAdd && !is_float(e->type) && !exact_) return sum(e);
    add(1 + static_cast<uint64_t>(e->op));
    add(static_cast<uint64_t>(e->type));
    if (e->op == Op::kInt) add(static_cast<uint64_t>(e->int_value));
    if (e->op == Op::kFloat) add(std::bit_cast<uint64_t>(e->float_value));
    if (e->op == Op::kVar) var(e->var);
    if (e->op == Op::kLoad) buffer(e->buffer);
    exprs(e->args);
  }
  // The simplifier orders the terms of a sum by names.
  void sum(const Expr& e) {
    std::vector<uint64_t> found;
    terms(e, found);
    std::sort(found.begin(), found.end());
    add(1 + static_cast<uint64_t>(e->op));
    add(static_cast<uint64_t>(e->type));
    add(found.size());
    for (const uint64_t term : found) add(term);
  }
  void terms(const Expr& e, std::vector<uint64_t>& found) {
    if (e->op == Op::kAdd) {
      for (const Expr& arg : e->args) terms(arg, found);
      return;
    }
    const uint64_t before = std::exchange(state_, 0);
    expr(e);
    found.push_back(std::exchange(state_, before));
  }
  void exprs(const std::vector<Expr>& list) {
    add(list.size());
    for (const Expr& e : list) expr(e);
  }

  void stmt(const Stmt& s) {
    add(static_cast<uint64_t>(s->kind));
    if (s->kind == StmtKind::kFor) {
      add(static_cast<uint64_t>(s->for_kind));
      if (exact_) add(s->peel ? 1 : 0);
      expr(s->min);
      expr(s->extent);
      var(s->var);
    }
    expr(s->condition);
    if (s->buffer) buffer(s->buffer);
    exprs(s->indices);
    if (s->kind == StmtKind::kPrefetch) add(static_cast<uint64_t>(s->cache));
    expr(s->value);
    gpu_parts(s);
    text(s->name);
    add(s->buffers.size());
    for (const BufferPtr& b : s->buffers) buffer(b);
    add(s->body.size());
    for (const Stmt& child : s->body) stmt(child);
  }

  // What only statements of GPUs have; other statements keep the hash that they always had.
  void gpu_parts(const Stmt& s) {
    if (s->async || s->warp) add(s->async ? 1 : 2);
    if (s->count != 0) add(static_cast<uint64_t>(s->count));
    for (const int warps : s->warps) add(static_cast<uint64_t>(warps));
    for (const Box& box : s->boxes) {
      buffer(box.buffer);
      exprs(box.indices);
      for (const int64_t extent : box.extents) add(static_cast<uint64_t>(extent));
      add(box.transposed ? 1 : 0);
    }
  }

  bool exact_;
  uint64_t state_;
  std::unordered_map<const Var*, uint64_t> vars_;  // looked up only
  std::unordered_map<const Buffer*, uint64_t> buffers_;
};

}  // namespace

uint64_t hash(const Program& program) {
  Hasher hasher;
  hasher.program(program);
  return hasher.value();
}

Identity identity(const Program& program) {
  Identity result;
  for (uint64_t* half : {&result.first, &result.second}) {
    Hasher hasher(true, half == &result.first ? 1 : 2);
    hasher.program(program);
    *half = hasher.value();
  }
  return result;
}

}  // namespace hone::ir
