// hone.Attention: softmax(Q K scale + mask) V as one task, made by the pass that recognizes it.
//
// Operands: queries [batch.., m, e], keys as the product reads them [batch.., e, n], values
// [batch.., n, d], and optionally what is added to the scores, broadcast to [batch.., m, n].
// causal_offset c: query m sees keys up to m + c, whatever is added to the others; each sees one.
#include <numbers>

#include "hone/graph/emit.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status infer_fused_attention(InferContext& c) {
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  const size_t rank = q.size();
  const auto fail = [&] {
    return c.fail("queries, keys and values of shapes {}, {} and {}", to_string(q), to_string(k),
                  to_string(v));
  };
  if (rank < 2 || k.size() != rank || v.size() != rank || q[rank - 1] != k[rank - 2] ||
      k[rank - 1] != v[rank - 2])
    return fail();
  const Shape batch(q.begin(), q.end() - 2);
  for (const Shape* other : {&k, &v}) {
    if (Shape(other->begin(), other->end() - 2) != batch) return fail();
  }
  Shape scores = batch, result = batch;
  scores.insert(scores.end(), {q[rank - 2], k[rank - 1]});
  result.insert(result.end(), {q[rank - 2], v[rank - 1]});
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.has(i) && !is_float(c.dtype(i)))
      return c.fail("operand {} of type {}", i, dtype_name(c.dtype(i)));
  }
  if (c.has(3) && broadcast(scores, c.shape(3)) != scores)
    return c.fail("a mask of shape {} for scores of shape {}", to_string(c.shape(3)),
                  to_string(scores));
  return c.set(0, c.dtype(0), std::move(result));
}

void emit_fused_attention(EmitContext& c) {
  const Shape& q = c.input(0).shape;
  const size_t batches = q.size() - 2;
  const int depth_dim = static_cast<int>(q.size()) - 1;
  const int64_t keys = c.input(1).shape.back();
  const DType dtype = compute_type(c.result().dtype);
  std::vector<std::string> roles;
  for (size_t d = 0; d < batches; ++d) roles.push_back(batches == 1 ? "b" : fmt::format("b{}", d));
  roles.insert(roles.end(), {"m", "d"});
  c.name_dims(roles);
  c.add_axis("n", keys);
  const auto at = [&](const Point& point, const Expr& row, const Expr& column) {
    std::vector<Expr> index(point.index.begin(),
                            point.index.begin() + static_cast<std::ptrdiff_t>(batches));
    index.insert(index.end(), {row, column});
    return index;
  };
  const bool causal = c.node().attributes.has("causal_offset");
  const int64_t offset = c.node().attributes.integer("causal_offset", 0);
  EmitContext::PointValue until;  // where the keys end that a query sees
  if (causal) {
    until = [&](const Point& point) { return point.index[batches] + (offset + 1); };
  }
  const auto over_keys = [&] { return std::vector{compute::make_axis("r", keys)}; };
  const EmitContext::StageAxes scores({depth_dim}, {"n"}), rows({depth_dim});

  c.reduce(
      Combine::kSum, StageTag("scores", ""), {compute::make_axis("e", q.back())},
      [&](const Point& point, const std::vector<Expr>& r) {
        return c.read(0, "query", at(point, point.index[batches], r[0])) *
               c.read(1, "key", at(point, r[0], c.axis(point, "n")));
      },
      scores);
  c.pointwise(
      StageTag("masked", causal || c.node().has_input(3) ? "mask" : ""),
      [&](const Point& point) {
        const Expr scaled = c.last(point) * literal(dtype, c.node().attributes.number("scale", 1));
        const auto seen = [&](const Expr& score) {
          if (!causal) return score;
          return ir::select(ir::less(c.axis(point, "n"), until(point)), score, lowest(dtype));
        };
        if (!c.node().has_input(3)) return seen(scaled);
        const std::vector<Expr> full = at(point, point.index[batches], c.axis(point, "n"));
        const Shape& shape = c.input(3).shape;
        std::vector<Expr> index;
        for (size_t d = 0; d < shape.size(); ++d)
          index.push_back(shape[d] == 1 ? ir::constant(0) : full[full.size() - shape.size() + d]);
        const Expr mask = c.read(3, "mask", index);
        return seen(scaled + (mask->type == dtype ? mask : ir::cast(dtype, mask)));
      },
      scores);
  c.reduce(
      Combine::kMax, StageTag("most", ""), over_keys(),
      [&](const Point& point, const std::vector<Expr>& r) {
        return c.last(c.moved(point, "n", r[0]));
      },
      rows, until);
  c.pointwise(
      StageTag("weights", ""),
      [&](const Point& point) {
        // A power of 2 takes two thirds of the instructions of exp.
        const Expr below = c.last(point, 1) - c.last(point);
        return ir::make(ir::Op::kPow,
                        {literal(dtype, 2), below * literal(dtype, std::numbers::log2e)});
      },
      scores);
  c.reduce(
      Combine::kSum, StageTag("total", ""), over_keys(),
      [&](const Point& point, const std::vector<Expr>& r) {
        return c.last(c.moved(point, "n", r[0]));
      },
      rows, until);
  c.reduce(
      Combine::kSum, StageTag("sums", ""), over_keys(),
      [&](const Point& point, const std::vector<Expr>& r) {
        return c.last(c.moved(point, "n", r[0]), 1) *
               c.read(2, "value", at(point, r[0], point.index.back()));
      },
      {}, until);
  c.pointwise("attention", [&](const Point& point) {
    return c.last(point) * (literal(dtype, 1) / c.last(point, 1));
  });
}

}  // namespace

std::span<const Op> fused_attention_ops() {
  static const Op ops[] = {
      {.name = "hone.Attention",
       .min_inputs = 3,
       .max_inputs = 4,
       .kind = Kind::kReduction,
       .attributes = "scale:f causal_offset:i",
       .infer = infer_fused_attention,
       .emit = emit_fused_attention},
  };
  return ops;
}

}  // namespace hone::graph
