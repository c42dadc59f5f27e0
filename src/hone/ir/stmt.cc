#include "hone/ir/stmt.h"

#include <algorithm>
#include <array>

#include "hone/base/assert.h"

namespace hone::ir {
namespace {

Stmt node(StmtNode n) { return std::make_shared<const StmtNode>(std::move(n)); }

// Statements in order, without blocks in between.
std::vector<Stmt> flatten(std::vector<Stmt> body) {
  bool nested = false;
  for (const Stmt& s : body) nested |= s->kind == StmtKind::kBlock;
  if (!nested) return body;
  std::vector<Stmt> flat;
  for (Stmt& s : body) {
    if (s->kind == StmtKind::kBlock) {
      flat.insert(flat.end(), s->body.begin(), s->body.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  return flat;
}

bool equal_all(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

bool equal_boxes(const std::vector<Box>& a, const std::vector<Box>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Box& x, const Box& y) {
    return x.buffer == y.buffer && x.extents == y.extents && x.transposed == y.transposed &&
           equal_all(x.indices, y.indices);
  });
}

void check_box(const Box& box) {
  HONE_ASSERT(box.buffer != nullptr && box.indices.size() == box.buffer->shape.size() &&
                  box.extents.size() == box.indices.size(),
              "a box needs one index and one extent per dimension of its buffer");
}

}  // namespace

Stmt make_for(VarPtr var, Expr min, Expr extent, ForKind kind, std::vector<Stmt> body, bool peel) {
  HONE_ASSERT(var != nullptr, "a loop without variable");
  HONE_ASSERT(min->type == DType::kI64 && extent->type == DType::kI64,
              "the range of a loop is not i64");
  return node({.kind = StmtKind::kFor,
               .for_kind = kind,
               .peel = peel,
               .var = std::move(var),
               .min = std::move(min),
               .extent = std::move(extent),
               .body = flatten(std::move(body))});
}

Stmt make_if(Expr condition, std::vector<Stmt> body) {
  HONE_ASSERT(condition->type == DType::kBool, "the condition of an if is not bool");
  return node(
      {.kind = StmtKind::kIf, .condition = std::move(condition), .body = flatten(std::move(body))});
}

Stmt make_store(BufferPtr buffer, std::vector<Expr> indices, Expr value) {
  HONE_ASSERT(indices.size() == buffer->shape.size(), "a store needs one index per dimension");
  HONE_ASSERT(value->type == buffer->dtype, "the value stored is not of the buffer's type");
  for (const Expr& i : indices) HONE_ASSERT(i->type == DType::kI64, "an index is not i64");
  return node({.kind = StmtKind::kStore,
               .buffer = std::move(buffer),
               .indices = std::move(indices),
               .value = std::move(value)});
}

Stmt make_block(std::vector<Stmt> body) {
  body = flatten(std::move(body));
  if (body.size() == 1) return body[0];
  return node({.kind = StmtKind::kBlock, .body = std::move(body)});
}

Stmt make_alloc(BufferPtr buffer, std::vector<Stmt> body) {
  return node(
      {.kind = StmtKind::kAlloc, .buffer = std::move(buffer), .body = flatten(std::move(body))});
}

Stmt make_prefetch(BufferPtr buffer, std::vector<Expr> indices, int cache) {
  HONE_ASSERT(indices.size() == buffer->shape.size(), "a prefetch needs one index per dimension");
  return node({.kind = StmtKind::kPrefetch,
               .buffer = std::move(buffer),
               .indices = std::move(indices),
               .cache = cache});
}

Stmt make_extern(std::string name, std::vector<BufferPtr> buffers) {
  return node({.kind = StmtKind::kExtern, .name = std::move(name), .buffers = std::move(buffers)});
}

Stmt make_async_store(BufferPtr buffer, std::vector<Expr> indices, Expr value) {
  StmtNode n = *make_store(std::move(buffer), std::move(indices), std::move(value));
  n.async = true;
  return node(std::move(n));
}

Stmt make_barrier(bool warp) { return node({.kind = StmtKind::kBarrier, .warp = warp}); }
Stmt make_commit() { return node({.kind = StmtKind::kCommit}); }
Stmt make_wait(int64_t count) { return node({.kind = StmtKind::kWait, .count = count}); }

Stmt make_matrix(Box d, Box a, Box b, bool async) {
  for (const Box* box : {&d, &a, &b}) check_box(*box);
  return node({.kind = StmtKind::kMatrix,
               .async = async,
               .boxes = {std::move(d), std::move(a), std::move(b)}});
}

Stmt make_box_copy(Box destination, Box source, BufferPtr signal, std::vector<Expr> indices) {
  check_box(destination);
  check_box(source);
  return node({.kind = StmtKind::kBoxCopy,
               .buffer = std::move(signal),
               .indices = std::move(indices),
               .boxes = {std::move(destination), std::move(source)}});
}

Stmt make_signals(BufferPtr buffer, int64_t arrivals, std::vector<Stmt> body) {
  StmtNode n = *make_alloc(std::move(buffer), std::move(body));
  n.count = arrivals;
  return node(std::move(n));
}

Stmt make_arrive(BufferPtr signal, std::vector<Expr> indices) {
  return node(
      {.kind = StmtKind::kArrive, .buffer = std::move(signal), .indices = std::move(indices)});
}

Stmt make_await(BufferPtr signal, std::vector<Expr> indices, Expr parity) {
  return node({.kind = StmtKind::kAwait,
               .buffer = std::move(signal),
               .indices = std::move(indices),
               .value = std::move(parity)});
}

Stmt make_roles(std::vector<int> warps, std::vector<Stmt> bodies) {
  HONE_ASSERT(warps.size() == bodies.size(), "each role needs its number of warps");
  return node({.kind = StmtKind::kRoles, .body = std::move(bodies), .warps = std::move(warps)});
}

std::string_view for_kind_name(ForKind kind) {
  constexpr std::array<std::string_view, kNumForKinds> kNames = {
      "for", "parallel", "vectorized", "unrolled", "thread", "warp", "lane"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view role_name(Role role) {
  constexpr std::array<std::string_view, 5> kNames = {"input", "constant", "packed", "workspace",
                                                      "output"};
  return kNames[static_cast<size_t>(role)];
}

Stmt with_body(const StmtNode& n, std::vector<Stmt> body) {
  if (n.kind == StmtKind::kBlock) return make_block(std::move(body));
  StmtNode copy = n;
  copy.body = n.kind == StmtKind::kRoles ? std::move(body) : flatten(std::move(body));
  return node(std::move(copy));
}

Stmt with_exprs(const StmtNode& n, Expr min, Expr extent, Expr condition, std::vector<Expr> indices,
                Expr value, std::vector<Stmt> body, std::vector<Box> boxes) {
  if (n.kind == StmtKind::kBlock) return make_block(std::move(body));
  StmtNode copy = n;
  copy.min = std::move(min);
  copy.extent = std::move(extent);
  copy.condition = std::move(condition);
  copy.indices = std::move(indices);
  copy.value = std::move(value);
  copy.body = n.kind == StmtKind::kRoles ? std::move(body) : flatten(std::move(body));
  copy.boxes = std::move(boxes);
  return node(std::move(copy));
}

bool equal(const Stmt& a, const Stmt& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->for_kind != b->for_kind || a->peel != b->peel || a->var != b->var ||
      a->buffer != b->buffer || a->cache != b->cache || a->name != b->name ||
      a->buffers != b->buffers || a->async != b->async || a->warp != b->warp ||
      a->count != b->count || a->warps != b->warps || !equal_boxes(a->boxes, b->boxes) ||
      a->body.size() != b->body.size() || !equal(a->min, b->min) || !equal(a->extent, b->extent) ||
      !equal(a->condition, b->condition) || !equal(a->value, b->value) ||
      !equal_all(a->indices, b->indices)) {
    return false;
  }
  for (size_t i = 0; i < a->body.size(); ++i) {
    if (!equal(a->body[i], b->body[i])) return false;
  }
  return true;
}

Stmt substitute(const Stmt& s, const VarMap& map) {
  return rewrite_exprs(s, [&map](const Expr& e) -> Expr {
    if (e->op != Op::kVar) return nullptr;
    for (const auto& [var, value] : map) {
      if (var == e->var) return value;
    }
    return nullptr;
  });
}

int64_t Phase::num_tiles() const {
  const bool tiled = body && body->kind == StmtKind::kFor && body->for_kind == ForKind::kParallel &&
                     is_const_int(body->min, 0) && is_const_int(body->extent);
  return tiled ? body->extent->int_value : 1;
}

}  // namespace hone::ir
