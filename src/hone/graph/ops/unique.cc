// Unique: the different elements, or slices along an axis, where each first stands, which of them
// each is, and how often it occurs.
#include <algorithm>

#include "hone/graph/evaluate.h"
#include "hone/graph/extents.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/sort_pairs.h"
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

// Sorts the numbers of the rows by their elements, from the last column to the first one, and
// compares neighbours.
class UniqueRows {
 public:
  explicit UniqueRows(EmitContext& c)
      : c_(c),
        rows_(c.input(0).shape[0]),
        width_(c.input(0).shape[1]),
        given_("given", DType::kI64),
        count_("count", DType::kI64),
        differs_("differs", DType::kI64),
        sorted_(sort_key_type(compute_type(c.input(0).dtype)), rows_) {
    for (const char* name : {"first", "times", "which", "number"})
      lists_.push_back(ir::make_buffer(name, DType::kI64, {rows_}, ir::Scope::kThread));
  }

  void emit() {
    c_.body("unique", {}, [&](const std::vector<Expr>&) {
      std::vector<Stmt> body = {given_.set(rows()), sort(),  collect(),
                                number_groups(),    write(), number_rows()};
      body.push_back(c_.store(4, {number(0)}, count_.get()));
      Stmt all = sorted_.with_memory({with_locals({given_, count_, differs_}, std::move(body))});
      for (const ir::BufferPtr& list : lists_) all = ir::make_alloc(list, {all});
      return std::vector{all};
    });
  }

 private:
  // By group of equal rows, in ascending order: its first row, how many rows it has, its number in
  // the result. By row: its group.
  enum List : size_t { kFirst, kTimes, kWhich, kNumber };

  static Expr number(int64_t value) { return ir::constant(value); }
  [[nodiscard]] Expr rows() {
    return c_.node().has_input(1) ? ir::min(c_.read(1, "rows", {number(0)}), number(rows_))
                                  : number(rows_);
  }
  [[nodiscard]] Expr at(List list, const Expr& i) const { return ir::load(lists_[list], {i}); }
  [[nodiscard]] Stmt put(List list, const Expr& i, const Expr& value) const {
    return ir::make_store(lists_[list], {i}, value);
  }

  // Ascends with the elements; all NaNs have the last one.
  [[nodiscard]] Expr key_of(const Expr& row, const Expr& column) {
    return sort_key(c_.read(0, "data", {row, column}), false, NanOrder::kLast);
  }

  // The sort is stable, so of equal rows the first one stays the first.
  Stmt sort() {
    const Expr zero = ir::constant_int(0, sort_key_type(compute_type(c_.input(0).dtype)));
    return ir::make_block(
        {count_to("i", given_.get(), [&](const Expr& i) { return sorted_.put(i, zero, i); }),
         count_to("m", number(width_), [&](const Expr& m) {
           return std::vector{count_to("i", given_.get(),
                                       [&](const Expr& i) {
                                         const Expr row = sorted_.place(i);
                                         return sorted_.put(i, key_of(row, number(width_ - 1) - m),
                                                            row);
                                       }),
                              sorted_.sort(given_.get())};
         })});
  }

  // Sets differs_ to whether row i in ascending order is another one than the row before.
  Stmt compare(const Expr& i) {
    const Expr own = sorted_.place(i), before = sorted_.place(ir::max(i + -1, number(0)));
    return ir::make_block(
        {differs_.set(ir::select(ir::less(number(0), i), number(0), number(1))),
         count_to("m", number(width_), [&](const Expr& m) {
           const Expr other = ir::make(ir::Op::kNe, {key_of(own, m), key_of(before, m)});
           return std::vector{ir::make_if(other, {differs_.set(number(1))})};
         })});
  }

  Stmt collect() {
    const Stmt groups = count_to("i", given_.get(), [&](const Expr& i) {
      const Expr row = sorted_.place(i), group = count_.get() + -1;
      const Stmt open =
          ir::make_if(ir::make(ir::Op::kEq, {differs_.get(), number(1)}),
                      {put(kFirst, count_.get(), row), put(kTimes, count_.get(), number(0)),
                       put(kNumber, count_.get(), count_.get()), count_.set(count_.get() + 1)});
      return std::vector{compare(i), open, put(kWhich, row, group),
                         put(kTimes, group, at(kTimes, group) + 1)};
    });
    return ir::make_block({count_.set(number(0)), groups});
  }

  // Without a sort groups have the order of their first rows.
  Stmt number_groups() {
    if (c_.node().attributes.integer("sorted", 1) != 0) return nullptr;
    const Expr next = differs_.get();
    return ir::make_block(
        {differs_.set(number(0)), count_to("i", given_.get(), [&](const Expr& row) {
           const Expr group = at(kWhich, row);
           return std::vector{ir::make_if(ir::make(ir::Op::kEq, {at(kFirst, group), row}),
                                          {put(kNumber, group, next), differs_.set(next + 1)})};
         })});
  }

  Stmt write() {
    return count_to("j", count_.get(), [&](const Expr& group) {
      const Expr first = at(kFirst, group), to = at(kNumber, group);
      std::vector<Stmt> body = {
          count_to("m", number(width_),
                   [&](const Expr& m) {
                     return std::vector{c_.store(0, {to, m}, c_.read(0, "data", {first, m}))};
                   }),
          c_.store(1, {to}, first), c_.store(3, {to}, at(kTimes, group))};
      std::erase(body, nullptr);
      return body;
    });
  }

  Stmt number_rows() {
    return count_to("i", given_.get(), [&](const Expr& row) {
      std::vector<Stmt> body = {c_.store(2, {row}, at(kNumber, at(kWhich, row)))};
      std::erase(body, nullptr);
      return body;
    });
  }

  EmitContext& c_;
  int64_t rows_, width_;
  Local given_, count_, differs_;
  SortPairs sorted_;
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
