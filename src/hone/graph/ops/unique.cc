// Unique: the different elements, or slices along an axis, where each first stands, which of them
// each is, and how often it occurs. Time grows with elements times different elements.
#include <algorithm>

#include "hone/graph/evaluate.h"
#include "hone/graph/extents.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Stmt;

// ---- hone.Unique(rows [n, m], how many rows there are [1], n without it): rows [n, m], first [n],
// which [n], count [n], their number [1] ----

Status infer_unique_rows(InferContext& c) {
  const Shape list = {c.shape(0)[0]};
  for (size_t i = 1; i < 4; ++i) HONE_RETURN_IF_ERROR(c.set(i, DType::kI64, list));
  HONE_RETURN_IF_ERROR(c.set(4, DType::kI64, {1}));
  return c.set(0, c.dtype(0), c.shape(0));
}

class UniqueRows {
 public:
  explicit UniqueRows(EmitContext& c)
      : c_(c),
        rows_(c.input(0).shape[0]),
        width_(c.input(0).shape[1]),
        count_("count", DType::kI64),
        found_("found", DType::kI64),
        order_("order", DType::kI64),
        rank_("rank", DType::kI64) {
    for (const char* name : {"first", "times", "which", "place"})
      lists_.push_back(ir::make_buffer(name, DType::kI64, {rows_}, ir::Scope::kStack));
  }

  void emit() {
    c_.body("unique", {}, [&](const std::vector<Expr>&) {
      std::vector<Stmt> body = {count_.set(number(0)), collect(), write(), number_rows()};
      body.push_back(c_.store(4, {number(0)}, count_.get()));
      Stmt all = with_locals({count_, found_, order_, rank_}, std::move(body));
      for (const ir::BufferPtr& list : lists_) all = ir::make_alloc(list, {all});
      return std::vector{all};
    });
  }

 private:
  enum List : size_t { kFirst, kTimes, kWhich, kPlace };

  static Expr number(int64_t value) { return ir::constant(value); }
  [[nodiscard]] Expr rows() {
    return c_.node().has_input(1) ? ir::min(c_.read(1, "rows", {number(0)}), number(rows_))
                                  : number(rows_);
  }
  [[nodiscard]] Expr at(List list, const Expr& i) const { return ir::load(lists_[list], {i}); }
  [[nodiscard]] Stmt put(List list, const Expr& i, const Expr& value) const {
    return ir::make_store(lists_[list], {i}, value);
  }
  static Stmt loop(const ir::VarPtr& var, const Expr& extent, std::vector<Stmt> body) {
    return ir::make_for(var, number(0), extent, ir::ForKind::kSerial, std::move(body));
  }
  static Expr equal(const Expr& a, const Expr& b) { return ir::make(ir::Op::kEq, {a, b}); }

  // Returns whether x comes before y. NaN comes last, and all NaNs are equal.
  static Expr before(const Expr& x, const Expr& y) {
    if (!is_float(x->type)) return ir::less(x, y);
    const Expr only_y_is_none = ir::logical_and(equal(x, x), ir::make(ir::Op::kNe, {y, y}));
    return ir::make(ir::Op::kOr, {ir::less(x, y), only_y_is_none});
  }

  // order = -1, 0, 1 as row a is before, like or after row b.
  Stmt compare(const Expr& a, const Expr& b) {
    const ir::VarPtr m = ir::make_var("m");
    const auto read = [&](const Expr& row) {
      const Expr element = c_.read(0, "data", {row, ir::variable(m)});
      return element->type == DType::kBool ? ir::cast(DType::kI64, element) : element;
    };
    const Expr x = read(a), y = read(b);
    const Expr undecided = equal(order_.get(), number(0));
    return ir::make_block(
        {order_.set(number(0)),
         loop(m, number(width_),
              {ir::make_if(ir::logical_and(undecided, before(x, y)), {order_.set(number(-1))}),
               ir::make_if(ir::logical_and(undecided, before(y, x)), {order_.set(number(1))})})});
  }

  // Each row is looked for among those seen before.
  Stmt collect() {
    const ir::VarPtr i = ir::make_var("i"), j = ir::make_var("j");
    const Expr row = ir::variable(i), seen = ir::variable(j);
    const Expr open = ir::less(found_.get(), number(0));
    const Stmt look = loop(
        j, count_.get(),
        {ir::make_if(open, {compare(row, at(kFirst, seen)),
                            ir::make_if(equal(order_.get(), number(0)), {found_.set(seen)})})});
    const Stmt take =
        ir::make_if(open, {found_.set(count_.get()), put(kFirst, found_.get(), row),
                           put(kTimes, found_.get(), number(0)), count_.set(count_.get() + 1)});
    return loop(i, rows(),
                {found_.set(number(-1)), look, take, put(kWhich, row, found_.get()),
                 put(kTimes, found_.get(), at(kTimes, found_.get()) + 1)});
  }

  // Each different row goes where it belongs: behind the smaller ones, or as it was found.
  Stmt write() {
    const ir::VarPtr j = ir::make_var("j"), l = ir::make_var("l"), m = ir::make_var("m");
    const Expr row = ir::variable(j), other = ir::variable(l), column = ir::variable(m);
    std::vector<Stmt> body = {rank_.set(row)};
    if (c_.node().attributes.integer("sorted", 1) != 0) {
      body = {rank_.set(number(0)),
              loop(l, count_.get(),
                   {compare(at(kFirst, other), at(kFirst, row)),
                    ir::make_if(ir::less(order_.get(), number(0)), {rank_.set(rank_.get() + 1)})})};
    }
    body.push_back(put(kPlace, row, rank_.get()));
    body.push_back(
        loop(m, number(width_),
             {c_.store(0, {rank_.get(), column}, c_.read(0, "data", {at(kFirst, row), column}))}));
    body.push_back(c_.store(1, {rank_.get()}, at(kFirst, row)));
    body.push_back(c_.store(3, {rank_.get()}, at(kTimes, row)));
    std::erase(body, nullptr);
    return loop(j, count_.get(), std::move(body));
  }

  Stmt number_rows() {
    const ir::VarPtr i = ir::make_var("i");
    const Expr row = ir::variable(i);
    const Stmt store = c_.store(2, {row}, at(kPlace, at(kWhich, row)));
    return store ? loop(i, rows(), {store}) : nullptr;
  }

  EmitContext& c_;
  int64_t rows_, width_;
  Local count_, found_, order_, rank_;
  std::vector<ir::BufferPtr> lists_;
};

void emit_unique_rows(EmitContext& c) { UniqueRows(c).emit(); }

// Rows that are compared, [n, m], and how many of them there are, an i64 [1] or missing.
struct Rows {
  ValueId data, count = kNoValue;
};

// Returns the rows of x, which are its elements or its slices along dimension 0.
Result<Rows> rows_of(ExpandContext& c, ValueId x, bool elements, const Shape& shape) {
  if (c.extents_of(x) == kNoValue) return Rows{c.reshape(x, shape)};
  if (elements) x = as_list(c, x);
  const ValueId extents = c.extents_of(x);
  for (int64_t d = 1; d < c.rank_of(x); ++d) {
    if (known_element(c.graph(), c.nodes(), {extents, d}) != c.shape_of(x)[static_cast<size_t>(d)])
      return c.unsupported("slices whose shape depends on other data");
  }
  return Rows{c.reshape(without_extents(c, x), shape), dimension(c, extents, 0)};
}

Status expand_unique(ExpandContext& c) {
  Shape perm, fixed;
  ValueId x = c.input(0);
  if (c.attributes().has("axis")) {
    HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
    perm = {static_cast<int64_t>(axis)};
    for (int64_t d = 0; d < c.rank(0); ++d) {
      if (d != perm[0]) perm.push_back(d);
    }
    x = c.transpose(x, perm);
    fixed.assign(c.shape_of(x).begin() + 1, c.shape_of(x).end());
  }
  const int64_t width = num_elements(fixed);
  const int64_t count = width == 0 ? 0 : num_elements(c.shape(0)) / width;
  if (count == 0) return c.unsupported("data of shape {}", to_string(c.shape(0)));
  HONE_ASSIGN_OR_RETURN(const Rows rows_of_x, rows_of(c, x, perm.empty(), {count, width}));
  std::vector<ValueId> operands = {rows_of_x.data};
  if (rows_of_x.count != kNoValue) operands.push_back(rows_of_x.count);
  const std::vector<ValueId> found =
      c.add_all("hone.Unique", operands, 5, {{"sorted", c.attributes().integer("sorted", 1)}});
  Shape all = fixed;
  all.insert(all.begin(), count);
  const ValueId extents =
      fixed.empty() ? found[4]
                    : c.add("Concat", {found[4], c.integers(fixed)}, {{"axis", int64_t{0}}});
  const ValueId rows = with_extents(c, c.reshape(found[0], all), extents);
  Shape back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  c.result(0, c.transpose(rows, back));
  if (c.wants(1)) c.result(1, with_extents(c, found[1], found[4]));
  const bool all_there = rows_of_x.count == kNoValue;
  if (c.wants(2)) c.result(2, all_there ? found[2] : with_extents(c, found[2], rows_of_x.count));
  if (c.wants(3)) c.result(3, with_extents(c, found[3], found[4]));
  return ok_status();
}

}  // namespace

std::span<const Op> unique_ops() {
  static const Op ops[] = {
      {.name = "hone.Unique",
       .max_inputs = 2,
       .max_outputs = 5,
       .attributes = "sorted:i",
       .infer = infer_unique_rows,
       .fold = evaluate_node,
       .emit = emit_unique_rows},
      {.name = "Unique",
       .since = 11,
       .max_outputs = 4,
       .attributes = "axis:i sorted:i",
       .expand = expand_unique},
  };
  return ops;
}

}  // namespace hone::graph
