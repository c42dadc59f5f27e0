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

// Scores, what is left of them after scale and mask, their softmax without its division, and the
// sums of values by these weights, divided last.
class AttentionStages {
 public:
  explicit AttentionStages(EmitContext& c)
      : c_(c),
        batches_(c.input(0).shape.size() - 2),
        keys_(c.input(1).shape.back()),
        dtype_(compute_type(c.result().dtype)),
        causal_(c.node().attributes.has("causal_offset")),
        scores_({static_cast<int>(batches_) + 1}, {"n"}),
        rows_({static_cast<int>(batches_) + 1}) {
    std::vector<std::string> roles;
    for (size_t d = 0; d < batches_; ++d)
      roles.push_back(batches_ == 1 ? "b" : fmt::format("b{}", d));
    roles.insert(roles.end(), {"m", "d"});
    c.name_dims(roles);
    c.add_axis("n", keys_);
    if (!causal_) return;
    const int64_t offset = c.node().attributes.integer("causal_offset", 0);
    until_ = [this, offset](const Point& point) { return point.index[batches_] + (offset + 1); };
  }

  void emit() {
    emit_scores();
    emit_masked();
    emit_weights();
    emit_result();
  }

 private:
  // Returns the index of an element in the point's batch.
  [[nodiscard]] std::vector<Expr> at(const Point& point, const Expr& row,
                                     const Expr& column) const {
    std::vector<Expr> index(point.index.begin(),
                            point.index.begin() + static_cast<std::ptrdiff_t>(batches_));
    index.insert(index.end(), {row, column});
    return index;
  }
  [[nodiscard]] std::vector<compute::Axis> over_keys() const {
    return {compute::make_axis("r", keys_)};
  }
  // Combines what the stage before has for the keys of a row.
  void reduce_rows(Combine combine, const char* name) {
    c_.reduce(
        combine, StageTag(name, ""), over_keys(),
        [&](const Point& point, const std::vector<Expr>& r) {
          return c_.last(c_.moved(point, "n", r[0]));
        },
        rows_, until_);
  }

  void emit_scores() {
    c_.reduce(
        Combine::kSum, StageTag("scores", ""), {compute::make_axis("e", c_.input(0).shape.back())},
        [&](const Point& point, const std::vector<Expr>& r) {
          return c_.read(0, "query", at(point, point.index[batches_], r[0])) *
                 c_.read(1, "key", at(point, r[0], c_.axis(point, "n")));
        },
        scores_);
  }

  [[nodiscard]] Expr mask(const Point& point) const {
    const std::vector<Expr> full = at(point, point.index[batches_], c_.axis(point, "n"));
    const Shape& shape = c_.input(3).shape;
    std::vector<Expr> index;
    for (size_t d = 0; d < shape.size(); ++d)
      index.push_back(shape[d] == 1 ? ir::constant(0) : full[full.size() - shape.size() + d]);
    const Expr added = c_.read(3, "mask", index);
    return added->type == dtype_ ? added : ir::cast(dtype_, added);
  }
  void emit_masked() {
    const bool added = c_.node().has_input(3);
    const double scale = c_.node().attributes.number("scale", 1);
    c_.pointwise(
        StageTag("masked", causal_ || added ? "mask" : ""),
        [&](const Point& point) {
          Expr score = c_.last(point) * literal(dtype_, scale);
          if (added) score = score + mask(point);
          if (!causal_) return score;
          return ir::select(ir::less(c_.axis(point, "n"), until_(point)), score, lowest(dtype_));
        },
        scores_);
  }

  void emit_weights() {
    reduce_rows(Combine::kMax, "most");
    c_.pointwise(
        StageTag("weights", ""),
        [&](const Point& point) {
          // A power of 2 takes two thirds of the instructions of exp.
          const Expr below = c_.last(point, 1) - c_.last(point);
          return ir::make(ir::Op::kPow,
                          {literal(dtype_, 2), below * literal(dtype_, std::numbers::log2e)});
        },
        scores_);
    reduce_rows(Combine::kSum, "total");
  }

  void emit_result() {
    c_.reduce(
        Combine::kSum, StageTag("sums", ""), over_keys(),
        [&](const Point& point, const std::vector<Expr>& r) {
          return c_.last(c_.moved(point, "n", r[0]), 1) *
                 c_.read(2, "value", at(point, r[0], point.index.back()));
        },
        {}, until_);
    c_.pointwise("attention", [&](const Point& point) {
      return c_.last(point) * (literal(dtype_, 1) / c_.last(point, 1));
    });
  }

  EmitContext& c_;
  size_t batches_;
  int64_t keys_;
  DType dtype_;
  bool causal_;
  EmitContext::StageAxes scores_, rows_;  // a point per query and key, and one per query
  EmitContext::PointValue until_;         // where the keys end that a query sees, if they do
};

void emit_fused_attention(EmitContext& c) { AttentionStages(c).emit(); }

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
