// Operators whose result's shape depends on data: NonZero, Compress; hone.CountedNonZero and
// hone.CountedCompress, which are told how many elements a run has; and hone.Compact, which makes
// such a result dense.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Stmt;

Expr number(int64_t value) { return ir::constant(value); }

// Returns whether nothing reads a value but what makes it dense, which looks at no element behind
// its extents.
bool is_compacted_only(const EmitContext& c, ValueId id) {
  const Graph& graph = c.graph();
  const bool is_output = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                     [&](ValueId out) { return out == id; });
  return !is_output && std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.type == "hone.Compact" ||
           std::find(node.inputs.begin(), node.inputs.end(), id) == node.inputs.end();
  });
}

// ---- hone.NonZero(x, its extent in a run [1] for each dimension, or none): indices [rank,
// elements of x], their number [1] ----

Status infer_places(InferContext& c) {
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, {1}));
  return c.set(0, DType::kI64, {c.rank(0), num_elements(c.shape(0))});
}

void emit_places(EmitContext& c) {
  const Shape& data = c.input(0).shape;
  const std::vector<Axis> all = axes_of(data, 0, data.size());
  const Axis row = compute::make_axis("row", c.result().shape[0]);
  const Axis column = compute::make_axis("column", c.result().shape[1]);
  const Local count("count", DType::kI64);
  c.body("non_zero", {}, [&](const std::vector<Expr>&) {
    const std::vector<Expr> at = compute::variables(all);
    std::vector<Stmt> found;
    for (size_t d = 0; d < data.size(); ++d)
      found.push_back(c.store(0, {number(static_cast<int64_t>(d)), count.get()}, at[d]));
    found.push_back(count.set(count.get() + 1));
    const Expr element = c.read(0, "data", at);
    const Expr hit = element->type == DType::kBool
                         ? element
                         : ir::make(ir::Op::kNe, {element, literal(element->type, 0)});
    // Later operators may use all indices before they know how many there are.
    Stmt clear = loops_over(
        {row, column}, {c.store(0, {ir::variable(row.var), ir::variable(column.var)}, number(0))});
    if (c.graph().repeats_steps && is_compacted_only(c, c.node().outputs[0])) clear = nullptr;
    return std::vector{with_locals(
        {count}, {clear, count.set(number(0)), loops_over_run(c, all, 1, {ir::make_if(hit, found)}),
                  c.store(1, {number(0)}, count.get())})};
  });
}

Status expand_non_zero(ExpandContext& c) {
  if (c.rank(0) == 0) return c.unsupported("a scalar");
  const std::vector<ValueId> found = c.add_all("hone.NonZero", c.node().inputs, 2);
  const ValueId extents =
      c.add("Concat", {c.integers({c.rank(0)}), found[1]}, {{"axis", int64_t{0}}});
  c.result(0, with_extents(c, found[0], extents));
  return ok_status();
}

// ---- hone.Compress(x, condition, how many elements it has in a run [1] or none): along dimension
// 0; the elements taken, their number [1] ----

Status infer_taken(InferContext& c) {
  Shape shape = c.shape(0);
  shape[0] = std::min(shape[0], c.shape(1)[0]);
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, {1}));
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_taken(EmitContext& c) {
  const Shape& shape = c.result().shape;
  const Axis row = compute::make_axis("row", shape[0]);
  const std::vector<Axis> inner = axes_of(shape, 1, shape.size());
  const Local count("count", DType::kI64);
  c.body("compress", {}, [&](const std::vector<Expr>&) {
    std::vector<Expr> from = {ir::variable(row.var)}, to = {count.get()};
    for (const Expr& i : compute::variables(inner)) {
      from.push_back(i);
      to.push_back(i);
    }
    const Stmt take = ir::make_if(
        c.read(1, "condition", {from[0]}),
        {loops_over(inner, {c.store(0, to, c.read(0, "data", from))}), count.set(count.get() + 1)});
    return std::vector{
        with_locals({count}, {count.set(number(0)), loops_over_run(c, {row}, 2, {take}),
                              c.store(1, {number(0)}, count.get())})};
  });
}

// Returns the condition of a Compress of rows, false for those that are not there.
ValueId condition_of(ExpandContext& c, ValueId rows) {
  const ValueId condition = filled(c, c.input(1), 0);
  if (c.extents_of(rows) == kNoValue) return condition;
  const ValueId count = c.reshape(dimension(c, c.extents_of(rows), 0), {});
  const ValueId there = c.binary("Less", places_along(c, c.shape(1), 0), count);
  return c.binary("And", condition, there);
}

Status expand_compress(ExpandContext& c) {
  if (c.rank(1) != 1 || c.dtype(1) != DType::kBool)
    return c.fail("a condition {} {}", dtype_name(c.dtype(1)), to_string(c.shape(1)));
  ValueId x = c.input(0);
  Shape perm;
  if (c.attributes().has("axis")) {
    HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
    perm = {static_cast<int64_t>(axis)};
    for (int64_t d = 0; d < c.rank(0); ++d) {
      if (d != perm[0]) perm.push_back(d);
    }
    x = c.transpose(x, perm);
  } else {
    x = as_list(c, x);
  }
  const std::vector<ExtentPart> rest = parts(c, x, 1, c.shape_of(x).size());
  std::vector<ValueId> operands = {without_extents(c, x), condition_of(c, x)};
  if (c.has(2)) operands.push_back(c.input(2));
  const std::vector<ValueId> taken = c.add_all("hone.Compress", std::move(operands), 2);
  ValueId extents = kNoValue;
  if (c.extents_of(x) != kNoValue) {
    extents = join_extents(c, joined({{taken[1], 0}}, rest));
  } else {
    Shape fixed = c.shape_of(x);
    fixed.erase(fixed.begin());
    extents = c.add("Concat", {taken[1], c.integers(fixed)}, {{"axis", int64_t{0}}});
  }
  const ValueId rows = with_extents(c, taken[0], extents);
  Shape back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  c.result(0, c.transpose(rows, back));
  return ok_status();
}

// ---- hone.Compact(x, extents): x dense from the start of the result; the extents ----

Status infer_compact(InferContext& c) {
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, c.shape(1)));
  return c.set(0, c.dtype(0), c.shape(0));
}

// By parts of rows that threads share: loops end where the extents do. Rows of which all elements
// are there keep their places.
constexpr int64_t kMostParts = 64;

void emit_compact_to_extents(EmitContext& c) {
  const Shape& shape = c.result().shape;
  const int64_t each = std::max<int64_t>(1, ceil_div(shape[0], kMostParts));
  const Axis part = compute::make_axis("part", ceil_div(shape[0], each));
  const Axis row = compute::make_axis("row", each);
  const std::vector<Axis> inner = axes_of(shape, 1, shape.size());
  c.body("compact", {part}, [&](const std::vector<Expr>& point) {
    const Expr first = point[0] * each;
    std::vector<Expr> at = {first + ir::variable(row.var)}, extents;
    for (const Expr& i : compute::variables(inner)) at.push_back(i);
    Expr flat = number(0), whole = ir::constant_bool(true);
    std::vector<Stmt> copied;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::vector<Expr> entry = {number(static_cast<int64_t>(d))};
      extents.push_back(c.read(1, "extents", entry));
      flat = flat * extents[d] + at[d];
      if (d > 0)
        whole = ir::logical_and(whole, ir::make(ir::Op::kEq, {extents[d], number(shape[d])}));
      copied.push_back(c.store(1, entry, extents[d]));
    }
    std::vector<Expr> to;
    int64_t stride = num_elements(shape);
    for (const int64_t extent : shape) {
      stride /= extent;
      to.push_back(ir::floormod(ir::floordiv(flat, stride), extent));
    }
    const Expr data = c.read(0, "data", at);
    Stmt moved = c.store(0, to, data);
    for (size_t d = shape.size(); d-- > 1;)
      moved = ir::make_for(inner[d - 1].var, number(0), ir::min(extents[d], number(shape[d])),
                           ir::ForKind::kSerial, {moved});
    std::vector<Stmt> copy = {loops_over(inner, {c.store(0, at, data)})};
    if (!inner.empty())
      copy = {ir::make_if(whole, copy), ir::make_if(ir::make(ir::Op::kNot, {whole}), {moved})};
    // The condition holds in all of these iterations; it says of which rows the data are read.
    const Expr rest = ir::min(extents[0], number(shape[0])) - first;
    const Stmt rows = ir::make_for(
        row.var, number(0), ir::min(ir::max(rest, number(0)), number(each)), ir::ForKind::kSerial,
        {ir::make_if(ir::less(at[0], extents[0]), std::move(copy))});
    return std::vector{rows, ir::make_if(ir::make(ir::Op::kEq, {point[0], number(0)}), copied)};
  });
}

// Threads of a GPU share an iteration for each element that there may be.
void emit_compact(EmitContext& c) {
  if (c.graph().repeats_steps && num_elements(c.result().shape) > 0 && !c.result().shape.empty())
    return emit_compact_to_extents(c);
  const Shape& shape = c.result().shape;
  const std::vector<Axis> all = axes_of(shape, 0, shape.size());
  const std::vector<Axis> points(all.begin(), all.begin() + (all.empty() ? 0 : 1));
  const std::vector<Axis> inner(all.begin() + std::ssize(points), all.end());
  c.body("compact", points, [&](const std::vector<Expr>&) {
    const std::vector<Expr> at = compute::variables(all);
    Expr flat = number(0), inside = ir::constant_bool(true), first = ir::constant_bool(true);
    std::vector<Stmt> extents;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::vector<Expr> entry = {number(static_cast<int64_t>(d))};
      const Expr extent = c.read(1, "extents", entry);
      flat = flat * extent + at[d];
      inside = ir::logical_and(inside, ir::less(at[d], extent));
      extents.push_back(c.store(1, entry, extent));
    }
    if (!points.empty()) first = ir::make(ir::Op::kEq, {at[0], number(0)});
    std::vector<Expr> to;
    int64_t stride = num_elements(shape);
    for (const int64_t extent : shape) {
      stride /= extent;
      to.push_back(ir::floormod(ir::floordiv(flat, stride), extent));
    }
    return std::vector{
        loops_over(inner, {ir::make_if(inside, {c.store(0, to, c.read(0, "data", at))})}),
        ir::make_if(first, extents)};
  });
}

// ---- hone.Append(x0, x1, ..., counts): the first counts[i] rows of each, one after the other ----

Status infer_append(InferContext& c) {
  Shape shape = c.shape(0);
  for (size_t i = 1; i + 1 < c.num_inputs(); ++i) {
    Shape other = c.shape(i);
    other[0] = shape[0];
    if (other != shape || c.dtype(i) != c.dtype(0))
      return c.fail("operands {} {} and {} {}", dtype_name(c.dtype(0)), to_string(c.shape(0)),
                    dtype_name(c.dtype(i)), to_string(c.shape(i)));
    shape[0] += c.shape(i)[0];
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_append(EmitContext& c) {
  const Shape& shape = c.result().shape;
  const std::vector<Axis> inner = axes_of(shape, 1, shape.size());
  const Local count("count", DType::kI64);
  const size_t operands = c.node().inputs.size() - 1;
  c.body("append", {}, [&](const std::vector<Expr>&) {
    const auto with = [&](const Expr& row) {
      std::vector<Expr> index = compute::variables(inner);
      index.insert(index.begin(), row);
      return index;
    };
    const Axis all = compute::make_axis("row", shape[0]);
    const Expr zero = literal(compute_type(c.result().dtype), 0);
    std::vector<Stmt> body = {
        count.set(number(0)),
        loops_over({all}, {loops_over(inner, {c.store(0, with(ir::variable(all.var)), zero)})})};
    for (size_t i = 0; i < operands; ++i) {
      const Axis row = compute::make_axis(fmt::format("row{}", i), c.input(i).shape[0]);
      const Expr r = ir::variable(row.var);
      const Stmt copy =
          loops_over(inner, {c.store(0, with(count.get()), c.read(i, "data", with(r)))});
      body.push_back(loops_over(
          {row},
          {ir::make_if(ir::less(r, c.read(operands, "counts", {number(static_cast<int64_t>(i))})),
                       {copy, count.set(count.get() + 1)})}));
    }
    return std::vector{with_locals({count}, std::move(body))};
  });
}

}  // namespace

std::span<const Op> varying_ops() {
  static const Op ops[] = {
      {.name = "hone.NonZero",
       .max_inputs = kMostOperands,
       .max_outputs = 2,
       .infer = infer_places,
       .fold = evaluate_node,
       .emit = emit_places},
      {.name = "NonZero", .since = 9, .expand = expand_non_zero},
      {.name = "hone.CountedNonZero", .max_inputs = kMostOperands, .expand = expand_non_zero},
      {.name = "hone.Compress",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 2,
       .infer = infer_taken,
       .fold = evaluate_node,
       .emit = emit_taken},
      {.name = "Compress",
       .since = 9,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "axis:i",
       .expand = expand_compress},
      {.name = "hone.CountedCompress",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = "axis:i",
       .expand = expand_compress},
      {.name = "hone.Append",
       .min_inputs = 2,
       .max_inputs = kMostOperands,
       .infer = infer_append,
       .fold = evaluate_node,
       .emit = emit_append},
      {.name = "hone.Compact",
       .min_inputs = 2,
       .max_inputs = 2,
       .max_outputs = 2,
       .infer = infer_compact,
       .emit = emit_compact},
  };
  return ops;
}

}  // namespace hone::graph
