// The places of the largest or the least elements along an axis: ArgMax, ArgMin, Hardmax.
#include <algorithm>

#include "hone/graph/expand.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

using Element = std::function<Expr(const Point& point, const Expr& r)>;

// The position in a row that is wanted: that of the largest or the least element, and of the first
// or the last among equal ones. NaN comes before all numbers, as in ONNX's reference.
struct Wanted {
  bool largest = true, last = false;
  int64_t extent = 1;
  DType type = DType::kF32;  // type of the elements

  // Places fit in 32 bits, as many as elements in a vector, with room for place_of_nan().
  [[nodiscard]] DType place_type() const {
    return extent < (int64_t{1} << 30) ? DType::kI32 : DType::kI64;
  }
  [[nodiscard]] Expr place(const Expr& r) const { return ir::cast(place_type(), r); }
  [[nodiscard]] Expr place(int64_t r) const { return place(ir::constant(r)); }
  // Returns whether a is NaN; for integers the result is a constant false.
  [[nodiscard]] Expr is_nan(const Expr& a) const {
    return is_float(type) ? ir::make(ir::Op::kNe, {a, a}) : ir::constant_bool(false);
  }
  // Returns whether an element that comes after another one replaces it.
  [[nodiscard]] Expr replaces(const Expr& a, const Expr& other) const {
    const Expr &low = largest ? other : a, &high = largest ? a : other;
    const Expr more = last ? ir::less_equal(low, high) : ir::less(low, high);
    if (!is_float(type)) return more;
    if (last) return ir::make(ir::Op::kOr, {more, is_nan(a)});
    // More or not a number, as one comparison: not (a <= other).
    return ir::logical_and(ir::make(ir::Op::kNot, {ir::less_equal(high, low)}),
                           ir::make(ir::Op::kEq, {other, other}));
  }
  [[nodiscard]] Expr lowest_element() const { return largest ? lowest(type) : highest(type); }
};

// Down columns: one pass, value and place together, each column in a lane of its own.
void place_in_columns(EmitContext& c, const Wanted& wanted, const Element& element,
                      const std::vector<int>& without) {
  const auto choose = [](const Expr& taken, const Expr& place, const Expr& value,
                         const EmitContext::Joint::Values& old) {
    return EmitContext::Joint::Values{ir::select(taken, place, old[0]),
                                      ir::select(taken, value, old[1])};
  };
  EmitContext::Joint joint;
  joint.identity = {wanted.place(0), wanted.lowest_element()};
  joint.update = [&](const Point& point, const std::vector<Expr>& r, const auto& old) {
    const Expr x = element(point, r[0]);
    return choose(wanted.replaces(x, old[1]), wanted.place(r[0]), x, old);
  };
  joint.merge = [&](const auto& one, const auto& other) {
    // Parts need not be one behind the other.
    const Expr behind = ir::less(one[0], other[0]);
    const Expr taken =
        ir::make(ir::Op::kOr,
                 {ir::logical_and(behind, wanted.replaces(other[1], one[1])),
                  ir::logical_and(ir::make(ir::Op::kNot, {behind}),
                                  ir::make(ir::Op::kNot, {wanted.replaces(one[1], other[1])}))});
    return choose(taken, other[0], other[1], one);
  };
  c.reduce_together(StageTag("extreme", ""), {compute::make_axis("r", wanted.extent)}, joint,
                    without);
}

// Along contiguous rows: the extreme value of a row, then the first or last place that has it;
// lanes along the row. Places of what is not a number lie beyond those of numbers, until
// found_place().
void place_in_rows(EmitContext& c, const Wanted& wanted, const Element& element,
                   const std::vector<int>& without) {
  c.reduce(
      wanted.largest ? Combine::kMax : Combine::kMin, StageTag("extreme", ""),
      {compute::make_axis("r", wanted.extent)},
      [&](const Point& point, const std::vector<Expr>& r) { return element(point, r[0]); },
      without);
  const int64_t beyond = wanted.last ? wanted.extent : -wanted.extent;
  c.reduce(
      wanted.last ? Combine::kMax : Combine::kMin, StageTag("place", ""),
      {compute::make_axis("r", wanted.extent)},
      [&](const Point& point, const std::vector<Expr>& r) {
        const Expr x = element(point, r[0]), place = wanted.place(r[0]);
        const Expr found = ir::select(ir::make(ir::Op::kEq, {x, c.last(point)}), place,
                                      wanted.place(wanted.last ? 0 : wanted.extent - 1));
        if (!is_float(wanted.type)) return found;
        return ir::select(wanted.is_nan(x), place + beyond, found);
      },
      without);
}
Expr found_place(const Wanted& wanted, const Expr& place) {
  if (!is_float(wanted.type)) return place;
  if (wanted.last)
    return ir::select(ir::less(place, wanted.place(wanted.extent)), place, place - wanted.extent);
  return ir::select(ir::less(place, wanted.place(0)), place + wanted.extent, place);
}

// Stages that find the place; returns it for a point of the next stage, as wanted.place_type().
std::function<Expr(const Point&)> place_stages(EmitContext& c, const Wanted& wanted, size_t axis,
                                               const Element& element,
                                               const std::vector<int>& without) {
  const Storage storage = storage_or_dense(c.input(0));
  const auto dim = std::find(storage.order.begin(), storage.order.end(), static_cast<int>(axis));
  const bool in_columns = std::any_of(dim + 1, storage.order.end(), [&](int d) {
    return c.input(0).shape[static_cast<size_t>(d)] > 1;
  });
  if (in_columns) {
    place_in_columns(c, wanted, element, without);
    return [&c](const Point& point) { return c.last(point); };
  }
  place_in_rows(c, wanted, element, without);
  return [&c, wanted](const Point& point) { return found_place(wanted, c.last(point)); };
}

Status infer_arg(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  if (c.dtype(0) == DType::kBool) return c.fail("data of type bool");
  Shape shape = c.shape(0);
  if (shape[axis] == 0)
    return c.fail("no element along axis {} of shape {}", axis, to_string(shape));
  if (c.attributes().integer("keepdims", 1) != 0) {
    shape[axis] = 1;
  } else {
    shape.erase(shape.begin() + static_cast<long>(axis));
  }
  return c.set(0, DType::kI64, std::move(shape));
}

void emit_arg(EmitContext& c) {
  const bool largest = c.node().type == "ArgMax";
  const bool keep = c.node().attributes.integer("keepdims", 1) != 0;
  const size_t axis = axis_of(c, 0);
  const auto element = [&](const Point& point, const Expr& r) {
    std::vector<Expr> index = point.index;
    if (!keep) index.insert(index.begin() + static_cast<long>(axis), r);
    index[axis] = r;
    return c.read(0, "data", index);
  };
  const Wanted wanted{largest, c.node().attributes.integer("select_last_index", 0) != 0,
                      c.input(0).shape[axis], compute_type(c.input(0).dtype)};
  const auto place = place_stages(c, wanted, axis, element, {});
  c.pointwise(largest ? "arg_max" : "arg_min",
              [&](const Point& point) { return ir::cast(DType::kI64, place(point)); });
}

Status infer_hardmax(InferContext& c) {
  HONE_RETURN_IF_ERROR(axis_attribute(c, -1).status());
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

// Before opset 13 the axis splits the shape in two: one row is all that follows.
Status expand_hardmax(ExpandContext& c) {
  if (c.opset() >= 13) {
    c.decline();
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 1));
  const Shape shape = c.shape(0);
  const int64_t rows = num_elements(Shape(shape.begin(), shape.begin() + static_cast<long>(axis)));
  const int64_t row = num_elements(Shape(shape.begin() + static_cast<long>(axis), shape.end()));
  const ValueId y = c.add("Hardmax", {c.reshape(c.input(0), {rows, row})});
  c.result(0, c.reshape(y, shape));
  return ok_status();
}

void emit_hardmax(EmitContext& c) {
  const size_t axis = axis_of(c, -1);
  const auto element = [&](const Point& point, const Expr& r) {
    std::vector<Expr> index = point.index;
    index[axis] = r;
    return c.read(0, "data", index);
  };
  const Wanted wanted{true, false, c.input(0).shape[axis], compute_type(c.input(0).dtype)};
  const auto place = place_stages(c, wanted, axis, element, {static_cast<int>(axis)});
  c.pointwise("hardmax", [&](const Point& point) {
    const DType type = compute_type(c.result().dtype);
    const Expr here = ir::make(ir::Op::kEq, {wanted.place(point.index[axis]), place(point)});
    return ir::select(here, literal(type, 1), literal(type, 0));
  });
}

Op arg(std::string_view name, int since, int until, std::string_view attributes) {
  return {.name = name,
          .since = since,
          .until = until,
          .kind = Kind::kReduction,
          .attributes = attributes,
          .infer = infer_arg,
          .fold = evaluate_node,
          .emit = emit_arg,
          .non_negative = always};
}

}  // namespace

std::span<const Op> arg_extreme_ops() {
  static const std::vector<Op> ops = {
      arg("ArgMax", 1, 11, "axis:i keepdims:i"),
      arg("ArgMax", 12, kMaxOpset, "axis:i keepdims:i select_last_index:i"),
      arg("ArgMin", 1, 11, "axis:i keepdims:i"),
      arg("ArgMin", 12, kMaxOpset, "axis:i keepdims:i select_last_index:i"),
      {.name = "Hardmax",
       .kind = Kind::kReduction,
       .attributes = "axis:i",
       .infer = infer_hardmax,
       .expand = expand_hardmax,
       .fold = evaluate_node,
       .emit = emit_hardmax,
       .non_negative = always},
  };
  return ops;
}

}  // namespace hone::graph
