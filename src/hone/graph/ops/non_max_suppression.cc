// NonMaxSuppression: per image and class the boxes with the best scores, without those that overlap
// a better one; then all of them in one list. hone.CountedNonMaxSuppression is told how many
// images, classes and boxes a run has, by its last three operands.
#include <algorithm>
#include <optional>

#include "hone/graph/evaluate.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/sort_pairs.h"
#include "hone/graph/ops/spatial_hash.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::Stmt;

Expr number(int64_t value) { return ir::constant(value); }

// ---- hone.SelectBoxes(boxes [b, n, 4], scores [b, c, n], overlap?, score?, and how many images,
// classes and boxes a run has, each [1] or missing): the selected boxes [b, c, most], their number
// [b, c] ----

constexpr size_t kCounts = 4;

Status infer_select(InferContext& c) {
  const Shape& scores = c.shape(1);
  const int64_t most = std::min(c.attributes().integer("most", 0), scores[2]);
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, {scores[0], scores[1]}));
  return c.set(0, DType::kI64, {scores[0], scores[1], most});
}

// Sorted once; then each box is tested against those that were selected before it: all of them, or
// where there may be many, those near it.
class Selector {
 public:
  explicit Selector(EmitContext& c)
      : c_(c),
        boxes_(c.input(0).shape[1]),
        most_(c.result().shape[2]),
        type_(compute_type(c.input(0).dtype)),
        box_("box", DType::kI64),
        count_("count", DType::kI64),
        wanted_("wanted", DType::kI64),
        dead_("dead", DType::kBool),
        sides_(box_sides("box_", type_, {}, ir::Scope::kStack)),
        kept_(box_sides("kept_", type_, {rounded(most_)}, ir::Scope::kThread)),
        hits_(ir::make_buffer("hits", type_, {kBlock}, ir::Scope::kStack)),
        sorted_(sort_key_type(type_), boxes_) {
    if (SpatialHash::pays(most_)) grid_.emplace(type_, most_, sides_);
  }

  void emit() {
    const compute::Axis turn = compute::make_axis("turn", most_);
    c_.body("select_boxes", axes_of(c_.result().shape, 0, 2), [&](const std::vector<Expr>& point) {
      std::vector<Stmt> body = {
          loops_over({turn},
                     {c_.store(0, {point[0], point[1], ir::variable(turn.var)}, number(0))}),
          clear_kept(), count_.set(number(0)), wanted_.set(number(0))};
      if (grid_) body.push_back(grid_->clear());
      body.push_back(collect(point));
      if (grid_) body.push_back(grid_->choose_cells());
      body.push_back(sorted_.sort(wanted_.get()));
      body.push_back(select_in_order(point));
      body.push_back(c_.store(1, {point[0], point[1]}, count_.get()));
      if (grid_) body = {grid_->with_memory(std::move(body))};
      body = {ir::make_alloc(hits_, {sorted_.with_memory(std::move(body))})};
      for (const BoxSides& group : {sides_, kept_}) {
        for (const ir::BufferPtr& buffer : group) body = {ir::make_alloc(buffer, std::move(body))};
      }
      return std::vector{with_locals({box_, count_, wanted_, dead_}, std::move(body))};
    });
  }

 private:
  // The boxes of a run whose score is high enough.
  Stmt collect(const std::vector<Expr>& point) {
    const compute::Axis i = compute::make_axis("i", boxes_);
    const Expr box = ir::variable(i.var);
    const Expr score = c_.read(1, "scores", {point[0], point[1], box});
    std::vector<Stmt> take = sorted_.add(wanted_, sort_key(score, true, NanOrder::kLast), box);
    if (grid_) {
      for (Stmt& step : measure(point[0], box)) take.push_back(std::move(step));
      take.push_back(grid_->note_width());
    }
    if (c_.node().has_input(3)) take = {ir::make_if(ir::less(threshold(3), score), take)};
    Stmt all = loops_over_run(c_, {i}, kCounts + 2, std::move(take));
    for (const size_t d : {0, 1}) {
      if (!c_.node().has_input(kCounts + d)) continue;
      const Expr end = end_of_run(c_, kCounts + d, c_.input(1).shape[d]);
      all = ir::make_if(ir::less(point[d], end), {all});
    }
    return all;
  }

  // A box is selected if it overlaps none that was.
  Stmt select_in_order(const std::vector<Expr>& point) {
    const Expr blocks = ir::floordiv(count_.get() + (kBlock - 1), kBlock);
    const Stmt all = count_to("block", blocks, [&](const Expr& block) {
      return std::vector{
          ir::make_if(ir::make(ir::Op::kNot, {dead_.get()}), test_block(kept_, block * kBlock))};
    });
    std::vector<Stmt> keep = {c_.store(0, {point[0], point[1], count_.get()}, box_.get())};
    for (Stmt& step : copy_box(kept_, count_.get(), sides_)) keep.push_back(std::move(step));
    keep.push_back(count_.set(count_.get() + 1));
    Stmt tests = all;
    if (grid_) {
      keep.push_back(grid_->add());
      const auto chunk = [&](const BoxSides& boxes, const Expr& at) {
        return test_block(boxes, at);
      };
      tests = grid_->test(dead_, chunk, all, blocks);
    }
    return count_to("i", wanted_.get(), [&](const Expr& i) {
      std::vector<Stmt> body = {box_.set(sorted_.place(i))};
      for (Stmt& step : measure(point[0], box_.get())) body.push_back(std::move(step));
      body.push_back(dead_.set(ir::constant_bool(false)));
      body.push_back(tests);
      body.push_back(ir::make_if(ir::make(ir::Op::kNot, {dead_.get()}), keep));
      return std::vector{ir::make_if(ir::less(count_.get(), number(most_)), std::move(body))};
    });
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

  // Sets sides_.
  std::vector<Stmt> measure(const Expr& image, const Expr& box) {
    std::vector<Stmt> steps;
    Expr area;
    for (const int64_t dim : {0, 1}) {
      const auto [low, high] = edges(image, box, dim);
      const auto at = static_cast<size_t>(2 * dim);
      steps.push_back(ir::make_store(sides_[at], {}, low));
      steps.push_back(ir::make_store(sides_[at + 1], {}, high));
      const Expr side = ir::load(sides_[at + 1], {}) - ir::load(sides_[at], {});
      area = area ? area * side : side;
    }
    steps.push_back(ir::make_store(sides_[4], {}, area));
    return steps;
  }

  // Selected boxes that are not there yet lie nowhere.
  Stmt clear_kept() const {
    const compute::Axis all = compute::make_axis("kept", rounded(most_));
    return loops_over({all}, store_nowhere(kept_, ir::variable(all.var)));
  }
  static int64_t rounded(int64_t count) { return (count + kBlock - 1) / kBlock * kBlock; }

  // Marks the box as out if its intersection with one of a block of boxes is more than that part of
  // their union. In vector lanes: hits of all, then their maximum by halves.
  std::vector<Stmt> test_block(const BoxSides& boxes, const Expr& first) {
    const auto lanes = [](int64_t extent, const auto& make) {
      return vectors_to("j", number(extent),
                        [&](const Expr& j) { return std::vector<Stmt>{make(j)}; });
    };
    const auto own = [&](size_t k) { return ir::load(sides_[k], {}); };
    std::vector<Stmt> steps = {lanes(kBlock, [&](const Expr& j) {
      const auto other = [&](size_t k) { return ir::load(boxes[k], {first + j}); };
      Expr common, hit;
      for (const size_t dim : {0, 1}) {
        const Expr shared =
            ir::min(own(2 * dim + 1), other(2 * dim + 1)) - ir::max(own(2 * dim), other(2 * dim));
        const Expr meets = ir::less(literal(type_, 0), shared);
        common = common ? common * shared : shared;
        hit = hit ? ir::logical_and(hit, meets) : meets;
      }
      hit = ir::logical_and(hit, ir::less(threshold(2) * (own(4) + other(4) - common), common));
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

  static constexpr int64_t kBlock = SpatialHash::kLanes;  // boxes that are tested together
  EmitContext& c_;
  int64_t boxes_, most_;
  DType type_;
  Local box_, count_, wanted_, dead_;
  BoxSides sides_, kept_;  // the box at hand, those that were selected
  ir::BufferPtr hits_;
  SortPairs sorted_;
  std::optional<SpatialHash> grid_;
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
  std::vector<ValueId> operands = {c.input(0), c.input(1), operand(3), operand(4)};
  for (size_t i = 5; i < c.num_inputs(); ++i) operands.push_back(operand(i));
  const std::vector<ValueId> selected = c.add_all("hone.SelectBoxes", std::move(operands), 2,
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
       .max_inputs = kCounts + 3,
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
      {.name = "hone.CountedNonMaxSuppression",
       .min_inputs = 2,
       .max_inputs = 8,
       .attributes = "center_point_box:i",
       .expand = expand_non_max_suppression},
  };
  return ops;
}

}  // namespace hone::graph
