// NonMaxSuppression: per image and class the boxes with the best scores, without those that overlap
// a better one; then all of them in one list.
#include <algorithm>

#include "hone/graph/evaluate.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Expr number(int64_t value) { return ir::constant(value); }

// ---- hone.SelectBoxes(boxes [b, n, 4], scores [b, c, n], overlap?, score?): the selected boxes
// [b, c, most], their number [b, c] ----

Status infer_select(InferContext& c) {
  const Shape& scores = c.shape(1);
  const int64_t most = std::min(c.attributes().integer("most", 0), scores[2]);
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, {scores[0], scores[1]}));
  return c.set(0, DType::kI64, {scores[0], scores[1], most});
}

class Selector {
 public:
  explicit Selector(EmitContext& c)
      : c_(c),
        boxes_(c.input(0).shape[1]),
        type_(compute_type(c.input(0).dtype)),
        best_("best", DType::kI64),
        count_("count", DType::kI64),
        gone_(ir::make_buffer("gone", DType::kBool, {boxes_}, ir::Scope::kStack)) {}

  void emit() {
    const Shape& shape = c_.result().shape;
    const compute::Axis turn = compute::make_axis("turn", shape[2]);
    c_.body("select_boxes", axes_of(shape, 0, 2), [&](const std::vector<Expr>& point) {
      const compute::Axis i = compute::make_axis("i", boxes_);
      const Expr box = ir::variable(i.var);
      const auto score = [&](const Expr& of) {
        return c_.read(1, "scores", {point[0], point[1], of});
      };
      const Expr free = ir::make(ir::Op::kNot, {ir::load(gone_, {box})});
      const Expr none = ir::less(best_.get(), number(0));
      const Expr better = ir::select(none, ir::constant_bool(true),
                                     ir::less(score(ir::max(best_.get(), number(0))), score(box)));
      const Expr overlaps = overlap(point[0], best_.get(), box);
      const Stmt pick =
          loops_over({i}, {ir::make_if(ir::logical_and(free, better), {best_.set(box)})});
      const Stmt drop = loops_over({i}, {ir::make_if(overlaps, {mark(box, true)})});
      const Stmt take = ir::make_if(ir::less_equal(number(0), best_.get()),
                                    {c_.store(0, {point[0], point[1], count_.get()}, best_.get()),
                                     count_.set(count_.get() + 1), mark(best_.get(), true), drop});
      // Boxes below the score that is asked for are out from the start.
      Stmt start = mark(box, false);
      if (c_.node().has_input(3)) {
        start = ir::make_store(gone_, {box},
                               ir::make(ir::Op::kNot, {ir::less(threshold(3), score(box))}));
      }
      const Stmt clear = loops_over(
          {turn}, {c_.store(0, {point[0], point[1], ir::variable(turn.var)}, number(0))});
      std::vector<Stmt> body = {clear, count_.set(number(0)), loops_over({i}, {start}),
                                loops_over({turn}, {best_.set(number(-1)), pick, take}),
                                c_.store(1, {point[0], point[1]}, count_.get())};
      return std::vector{with_locals({best_, count_}, {ir::make_alloc(gone_, std::move(body))})};
    });
  }

 private:
  [[nodiscard]] Stmt mark(const Expr& box, bool gone) const {
    return ir::make_store(gone_, {box}, ir::constant_bool(gone));
  }
  Expr threshold(size_t operand) {
    if (!c_.node().has_input(operand)) return literal(type_, 0);
    const std::vector<Expr> at(c_.input(operand).shape.size(), number(0));
    return c_.read(operand, operand == 2 ? "overlap" : "score", at);
  }

  // Low and high edge of a box along a dimension: 0 or 1.
  std::pair<Expr, Expr> edges(const Expr& image, const Expr& box, int64_t dim) {
    const Expr a = c_.read(0, "boxes", {image, box, number(dim)});
    const Expr b = c_.read(0, "boxes", {image, box, number(dim + 2)});
    if (c_.node().attributes.integer("center_point_box", 0) == 0)
      return {ir::min(a, b), ir::max(a, b)};
    const Expr half = b * literal(type_, 0.5);
    return {a - half, a + half};
  }

  // Whether the intersection of two boxes is more than that part of their union.
  Expr overlap(const Expr& image, const Expr& first, const Expr& second) {
    const Expr zero = literal(type_, 0);
    Expr common, area_a, area_b;
    for (const int64_t dim : {0, 1}) {
      const auto [a_low, a_high] = edges(image, ir::max(first, number(0)), dim);
      const auto [b_low, b_high] = edges(image, second, dim);
      const Expr shared = ir::max(ir::min(a_high, b_high) - ir::max(a_low, b_low), zero);
      common = common ? common * shared : shared;
      area_a = area_a ? area_a * (a_high - a_low) : a_high - a_low;
      area_b = area_b ? area_b * (b_high - b_low) : b_high - b_low;
    }
    const Expr all = area_a + area_b - common;
    return ir::logical_and(ir::less(zero, common), ir::less(threshold(2) * all, common));
  }

  EmitContext& c_;
  int64_t boxes_;
  DType type_;
  Local best_, count_;
  ir::BufferPtr gone_;
};

void emit_select(EmitContext& c) { Selector(c).emit(); }

// ---- hone.ListBoxes(selected, number): rows (image, class, box), their number [1] ----

Status infer_list(InferContext& c) {
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, {1}));
  return c.set(0, DType::kI64, {num_elements(c.shape(0)), 3});
}

void emit_list(EmitContext& c) {
  const std::vector<compute::Axis> all = axes_of(c.input(0).shape, 0, 3);
  const Local count("count", DType::kI64);
  const compute::Axis row = compute::make_axis("row", c.result().shape[0]);
  const compute::Axis column = compute::make_axis("column", 3);
  c.body("list_boxes", {}, [&](const std::vector<Expr>&) {
    const std::vector<Expr> at = compute::variables(all);
    const std::vector<Expr> entry = {at[0], at[1], c.read(0, "selected", at)};
    std::vector<Stmt> write;
    for (int64_t k = 0; k < 3; ++k)
      write.push_back(c.store(0, {count.get(), number(k)}, entry[static_cast<size_t>(k)]));
    write.push_back(count.set(count.get() + 1));
    const Expr valid = ir::less(at[2], c.read(1, "number", {at[0], at[1]}));
    const Stmt clear = loops_over(
        {row, column}, {c.store(0, {ir::variable(row.var), ir::variable(column.var)}, number(0))});
    return std::vector{with_locals(
        {count}, {clear, count.set(number(0)), loops_over(all, {ir::make_if(valid, write)}),
                  c.store(1, {number(0)}, count.get())})};
  });
}

Status expand_non_max_suppression(ExpandContext& c) {
  const Shape boxes = c.shape(0), scores = c.shape(1);
  const bool fits = boxes.size() == 3 && scores.size() == 3 && boxes[2] == 4 &&
                    boxes[0] == scores[0] && boxes[1] == scores[2] && c.dtype(0) == c.dtype(1);
  if (!fits || !is_float(c.dtype(0)))
    return c.fail("boxes {} and scores {}", to_string(boxes), to_string(scores));
  const int64_t center = c.attributes().integer("center_point_box", 0);
  if (center != 0 && center != 1) return c.fail("center_point_box {}", center);
  for (size_t i = 2; i < 5; ++i) {
    if (c.has(i) && num_elements(c.shape(i)) != 1)
      return c.fail("operand {} of shape {}", i, to_string(c.shape(i)));
    if (i > 2 && c.has(i) && compute_type(c.dtype(i)) != compute_type(c.dtype(0)))
      return c.fail("operand {} of type {}", i, dtype_name(c.dtype(i)));
  }
  int64_t most = 0;
  if (c.has(2)) {
    HONE_ASSIGN_OR_RETURN(const auto given, c.integers(2, "the number of boxes per class"));
    most = std::clamp<int64_t>(given[0], 0, boxes[1]);
  }
  const int64_t all = boxes[0] * scores[1] * most;
  if (all == 0) {
    c.result(0, c.constant(Tensor(DType::kI64, {0, 3})));
    return ok_status();
  }
  const auto operand = [&](size_t i) { return c.has(i) ? c.input(i) : kNoValue; };
  const std::vector<ValueId> selected =
      c.add_all("hone.SelectBoxes", {c.input(0), c.input(1), operand(3), operand(4)}, 2,
                {{"center_point_box", center}, {"most", most}});
  const std::vector<ValueId> rows = c.add_all("hone.ListBoxes", selected, 2);
  const ValueId extents = c.add("Concat", {rows[1], c.integers({3})}, {{"axis", int64_t{0}}});
  c.result(0, with_extents(c, rows[0], extents));
  return ok_status();
}

}  // namespace

std::span<const Op> non_max_suppression_ops() {
  static const Op ops[] = {
      {.name = "hone.SelectBoxes",
       .min_inputs = 2,
       .max_inputs = 4,
       .max_outputs = 2,
       .attributes = "center_point_box:i most:i",
       .infer = infer_select,
       .fold = evaluate_node,
       .emit = emit_select},
      {.name = "hone.ListBoxes",
       .min_inputs = 2,
       .max_inputs = 2,
       .max_outputs = 2,
       .infer = infer_list,
       .fold = evaluate_node,
       .emit = emit_list},
      {.name = "NonMaxSuppression",
       .since = 10,
       .min_inputs = 2,
       .max_inputs = 5,
       .attributes = "center_point_box:i",
       .expand = expand_non_max_suppression},
  };
  return ops;
}

}  // namespace hone::graph
