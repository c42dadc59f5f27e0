// NonMaxSuppression: per image and class the boxes with the best scores, without those that overlap
// a better one; then all of them in one list.
#include <algorithm>
#include <array>

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
        box_("box", DType::kI64),
        count_("count", DType::kI64),
        left_("left", DType::kI64),
        right_("right", DType::kI64),
        dead_("dead", DType::kBool),
        box_sides_(sides("box_", {})),
        kept_sides_(sides("kept_", {rounded(c.result().shape[2])})),
        order_(ir::make_buffer("order", DType::kI64, {boxes_}, ir::Scope::kThread)),
        other_(ir::make_buffer("other", DType::kI64, {boxes_}, ir::Scope::kThread)),
        hits_(ir::make_buffer("hits", type_, {kBlock}, ir::Scope::kStack)) {}

  void emit() {
    const Shape& shape = c_.result().shape;
    const compute::Axis turn = compute::make_axis("turn", shape[2]);
    c_.body("select_boxes", axes_of(shape, 0, 2), [&](const std::vector<Expr>& point) {
      const Stmt clear = loops_over(
          {turn}, {c_.store(0, {point[0], point[1], ir::variable(turn.var)}, number(0))});
      std::vector<Stmt> body = {clear, count_.set(number(0))};
      for (Stmt& step : clear_kept(shape[2])) body.push_back(std::move(step));
      for (Stmt& step : sort(point)) body.push_back(std::move(step));
      body.push_back(select_in_order(point, shape[2]));
      body.push_back(c_.store(1, {point[0], point[1]}, count_.get()));
      Stmt all = ir::make_alloc(hits_, std::move(body));
      all = ir::make_alloc(order_, {ir::make_alloc(other_, {all})});
      for (const Sides& group : {box_sides_, kept_sides_}) {
        for (const ir::BufferPtr& buffer : group) all = ir::make_alloc(buffer, {all});
      }
      return std::vector{with_locals({box_, count_, left_, right_, dead_}, {all})};
    });
  }

 private:
  // What is known of a box or, of those that were selected, a list each: low and high edge in both
  // dimensions, and the area.
  using Sides = std::array<ir::BufferPtr, 5>;
  [[nodiscard]] Sides sides(const std::string& prefix, const Shape& shape) const {
    const ir::Scope scope = shape.empty() ? ir::Scope::kStack : ir::Scope::kThread;
    Sides made;
    constexpr const char* kNames[] = {"low0", "high0", "low1", "high1", "area"};
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = ir::make_buffer(prefix + kNames[i], type_, shape, scope);
    return made;
  }

  Expr score(const std::vector<Expr>& point, const Expr& box) {
    return c_.read(1, "scores", {point[0], point[1], box});
  }

  // order_ = the boxes by falling score, equal ones as they stand: a merge sort from runs of one.
  std::vector<Stmt> sort(const std::vector<Expr>& point) {
    const compute::Axis all = compute::make_axis("i", boxes_);
    std::vector<Stmt> steps = {loops_over(
        {all}, {ir::make_store(order_, {ir::variable(all.var)}, ir::variable(all.var))})};
    for (int64_t run = 1; run < boxes_; run *= 2) {
      const int64_t pairs = (boxes_ + 2 * run - 1) / (2 * run);
      const compute::Axis pair = compute::make_axis("pair", pairs);
      const compute::Axis place = compute::make_axis("place", 2 * run);
      const Expr first = ir::variable(pair.var) * (2 * run), to = first + ir::variable(place.var);
      const auto from = [&](const Local& at) {
        return ir::load(order_, {ir::min(at.get(), number(boxes_ - 1))});
      };
      const Expr left_end = ir::min(first + run, number(boxes_));
      const Expr right_end = ir::min(first + 2 * run, number(boxes_));
      const Expr not_less =
          ir::make(ir::Op::kNot, {ir::less(score(point, from(left_)), score(point, from(right_)))});
      const Expr take_left = ir::logical_and(
          ir::less(left_.get(), left_end),
          ir::make(ir::Op::kOr, {ir::less_equal(right_end, right_.get()), not_less}));
      // `dead_` remembers the choice: storing changes what it was made from.
      const std::vector<Stmt> merge = {
          dead_.set(take_left),
          ir::make_store(other_, {to}, ir::select(dead_.get(), from(left_), from(right_))),
          left_.set(ir::select(dead_.get(), left_.get() + 1, left_.get())),
          right_.set(ir::select(dead_.get(), right_.get(), right_.get() + 1))};
      steps.push_back(loops_over(
          {pair}, {left_.set(first), right_.set(first + run),
                   loops_over({place}, {ir::make_if(ir::less(to, number(boxes_)), merge)})}));
      std::swap(order_, other_);
    }
    return steps;
  }

  // A box is selected if it overlaps none that was.
  Stmt select_in_order(const std::vector<Expr>& point, int64_t most) {
    const compute::Axis i = compute::make_axis("i", boxes_);
    const ir::VarPtr block = ir::make_var("block");
    const Stmt tests = ir::make_for(
        block, number(0), ir::floordiv(count_.get() + (kBlock - 1), kBlock), ir::ForKind::kSerial,
        {ir::make_if(ir::make(ir::Op::kNot, {dead_.get()}),
                     test_block(ir::variable(block) * kBlock))});
    std::vector<Stmt> keep = {c_.store(0, {point[0], point[1], count_.get()}, box_.get())};
    for (size_t k = 0; k < box_sides_.size(); ++k)
      keep.push_back(ir::make_store(kept_sides_[k], {count_.get()}, ir::load(box_sides_[k], {})));
    keep.push_back(count_.set(count_.get() + 1));
    const Stmt take = ir::make_if(ir::make(ir::Op::kNot, {dead_.get()}), std::move(keep));
    Expr wanted = ir::less(count_.get(), number(most));
    if (c_.node().has_input(3))
      wanted = ir::logical_and(wanted, ir::less(threshold(3), score(point, box_.get())));
    std::vector<Stmt> body = measure(point[0]);
    for (const Stmt& step : {dead_.set(ir::constant_bool(false)), tests, take})
      body.push_back(step);
    return loops_over({i}, {box_.set(ir::load(order_, {ir::variable(i.var)})),
                            ir::make_if(wanted, std::move(body))});
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

  // Sets box_sides_ for box_.
  std::vector<Stmt> measure(const Expr& image) {
    std::vector<Stmt> steps;
    Expr area;
    for (const int64_t dim : {0, 1}) {
      const auto [low, high] = edges(image, box_.get(), dim);
      const auto at = static_cast<size_t>(2 * dim);
      steps.push_back(ir::make_store(box_sides_[at], {}, low));
      steps.push_back(ir::make_store(box_sides_[at + 1], {}, high));
      const Expr side = ir::load(box_sides_[at + 1], {}) - ir::load(box_sides_[at], {});
      area = area ? area * side : side;
    }
    steps.push_back(ir::make_store(box_sides_[4], {}, area));
    return steps;
  }

  // Selected boxes that are not there yet lie nowhere.
  std::vector<Stmt> clear_kept(int64_t most) {
    const compute::Axis all = compute::make_axis("kept", rounded(most));
    constexpr double kFar = 1e30;
    constexpr double kNowhere[] = {kFar, -kFar, kFar, -kFar, 0};
    std::vector<Stmt> stores;
    for (size_t k = 0; k < kept_sides_.size(); ++k) {
      stores.push_back(
          ir::make_store(kept_sides_[k], {ir::variable(all.var)}, literal(type_, kNowhere[k])));
    }
    return {loops_over({all}, std::move(stores))};
  }
  static int64_t rounded(int64_t count) { return (count + kBlock - 1) / kBlock * kBlock; }

  // Marks the box as out if its intersection with one of a block of selected ones is more than that
  // part of their union. In vector lanes: hits of all, then their maximum by halves.
  std::vector<Stmt> test_block(const Expr& first) {
    const auto lanes = [](int64_t extent, const auto& make) {
      const ir::VarPtr j = ir::make_var("j");
      return ir::make_for(j, number(0), number(extent), ir::ForKind::kVectorized,
                          {make(ir::variable(j))});
    };
    const auto own = [&](size_t k) { return ir::load(box_sides_[k], {}); };
    std::vector<Stmt> steps = {lanes(kBlock, [&](const Expr& j) {
      const auto kept = [&](size_t k) { return ir::load(kept_sides_[k], {first + j}); };
      Expr common, hit;
      for (const size_t dim : {0, 1}) {
        const Expr shared =
            ir::min(own(2 * dim + 1), kept(2 * dim + 1)) - ir::max(own(2 * dim), kept(2 * dim));
        const Expr meets = ir::less(literal(type_, 0), shared);
        common = common ? common * shared : shared;
        hit = hit ? ir::logical_and(hit, meets) : meets;
      }
      hit = ir::logical_and(hit, ir::less(threshold(2) * (own(4) + kept(4) - common), common));
      return ir::make_store(hits_, {j}, ir::select(hit, literal(type_, 1), literal(type_, 0)));
    })};
    for (int64_t half = kBlock / 2; half > 0; half /= 2) {
      steps.push_back(lanes(half, [&](const Expr& j) {
        return ir::make_store(hits_, {j},
                              ir::max(ir::load(hits_, {j}), ir::load(hits_, {j + half})));
      }));
    }
    steps.push_back(dead_.set(ir::less(literal(type_, 0), ir::load(hits_, {number(0)}))));
    return steps;
  }

  static constexpr int64_t kBlock = 32;  // selected boxes that are tested together
  EmitContext& c_;
  int64_t boxes_;
  DType type_;
  Local box_, count_, left_, right_, dead_;
  Sides box_sides_, kept_sides_;
  ir::BufferPtr order_, other_, hits_;
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
