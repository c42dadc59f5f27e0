#include "hone/ir/passes/tile_loops.h"

#include "hone/ir/visit.h"

namespace hone::ir {

bool is_unit(const StmtNode& s) {
  return s.kind == StmtKind::kFor &&
         (s.for_kind == ForKind::kVectorized || s.for_kind == ForKind::kUnrolled);
}

bool has_serial_loop(const Stmt& s) {
  return any_stmt(
      *s, [](const StmtNode& node) { return node.kind == StmtKind::kFor && !is_unit(node); });
}

bool counts_from_zero(const StmtNode& loop) {
  return is_const_int(loop.min, 0) && is_const_int(loop.extent);
}

Linear flat_index(const Expr& load) {
  Expr flat = constant(0);
  int64_t stride = 1;
  for (size_t d = load->args.size(); d-- > 0;) {
    flat = flat + load->args[d] * stride;
    stride *= load->buffer->shape[d];
  }
  return linearize(flat);
}

int64_t elements_of_line(const BufferPtr& buffer) {
  return std::max<int64_t>(kLineBytes / dtype_bytes(buffer->dtype), 1);
}

std::vector<Stmt> prefetch_lines(const BufferPtr& buffer, const Expr& first, int64_t count,
                                 int cache) {
  const int64_t line = elements_of_line(buffer);
  std::vector<Stmt> all;
  for (int64_t offset = 0; offset < count; offset += line) {
    std::vector<Expr> indices(buffer->shape.size(), constant(0));
    indices.back() = first + offset;
    all.push_back(make_prefetch(buffer, std::move(indices), cache));
  }
  return all;
}

}  // namespace hone::ir
