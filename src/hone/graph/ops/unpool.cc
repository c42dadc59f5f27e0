// Pooling with places: the maxima and their indices, MaxUnpool, Col2Im.
#include <algorithm>

#include "hone/graph/evaluate.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"

namespace hone::graph {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Stmt;

Expr inside(const Expr& place, int64_t extent) {
  return ir::logical_and(ir::less_equal(ir::constant(0), place),
                         ir::less(place, ir::constant(extent)));
}

Status infer_max_pool_indices(InferContext& c) {
  const Result<Window> window = make_window(c.attributes(), c.shape(0), {});
  if (!window.ok()) return c.fail("{}", window.status().message());
  Shape shape = {c.shape(0)[0], c.shape(0)[1]};
  shape.insert(shape.end(), window->output.begin(), window->output.end());
  HONE_RETURN_IF_ERROR(c.set(1, DType::kI64, shape));
  return c.set(0, c.dtype(0), std::move(shape));
}

// Indices count the elements of the whole operand, row by row or (storage_order 1) column by
// column.
Expr flat_index(const std::vector<Expr>& at, const Shape& shape, bool columns) {
  Expr spatial = ir::constant(0);
  for (size_t k = 2; k < shape.size(); ++k) {
    const size_t d = columns ? shape.size() + 1 - k : k;
    spatial = spatial * shape[d] + at[d];
  }
  const int64_t plane = num_elements(Shape(shape.begin() + 2, shape.end()));
  return (at[0] * shape[1] + at[1]) * plane + spatial;
}

void emit_max_pool_indices(EmitContext& c) {
  const Window window = window_of(c.graph(), c.node());
  const Shape& data = c.input(0).shape;
  const bool columns = c.node().attributes.integer("storage_order", 0) != 0;
  std::vector<Axis> kernel;
  for (size_t d = 0; d < window.rank(); ++d)
    kernel.push_back(compute::make_axis(fmt::format("k{}", d), window.kernel[d]));
  const Local best("best", compute_type(c.result().dtype)), place("place", DType::kI64);
  c.body("max_pool_indices", axes_of(c.result().shape, 0, data.size()),
         [&](const std::vector<Expr>& point) {
           std::vector<Expr> at = {point[0], point[1]};
           Expr within = ir::constant_bool(true);
           for (size_t d = 0; d < window.rank(); ++d) {
             at.push_back(point[d + 2] * window.stride[d] +
                          ir::variable(kernel[d].var) * window.dilation[d] - window.pad_low[d]);
             within = ir::logical_and(within, inside(at.back(), window.input[d]));
           }
           const Expr element = c.read(0, "data", at);
           const Expr better = ir::make(ir::Op::kOr, {ir::less(best.get(), element),
                                                      ir::less(place.get(), ir::constant(0))});
           const Stmt take =
               ir::make_if(better, {best.set(element), place.set(flat_index(at, data, columns))});
           return std::vector{with_locals(
               {best, place}, {best.set(lowest(element->type)), place.set(ir::constant(-1)),
                               loops_over(kernel, {ir::make_if(within, {take})}),
                               c.store(0, point, best.get()), c.store(1, point, place.get())})};
         });
}

// Returns whether all numbers are so large and so small that nothing computed of them overflows.
bool are_from(int64_t least, const Shape& numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](int64_t number) { return number >= least && number <= 1 << 24; });
}

Result<Shape> unpooled_shape(const InferContext& c) {
  const Shape kernel = c.attributes().integers("kernel_shape");
  const size_t rank = kernel.size();
  const Shape strides = c.attributes().integers("strides", Shape(rank, 1));
  const Shape pads = c.attributes().integers("pads", Shape(2 * rank, 0));
  if (c.shape(0).size() != rank + 2 || strides.size() != rank || pads.size() != 2 * rank)
    return c.fail("kernel_shape {} for data of shape {}", to_string(kernel), to_string(c.shape(0)));
  if (!are_from(1, kernel) || !are_from(1, strides) || !are_from(0, pads))
    return c.fail("kernel_shape {} with strides {} and pads {}", to_string(kernel),
                  to_string(strides), to_string(pads));
  Shape shape = {c.shape(0)[0], c.shape(0)[1]};
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back((c.shape(0)[d + 2] - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d]);
    if (shape.back() < 1) return c.fail("the result would have the shape {}", to_string(shape));
  }
  return shape;
}

Status infer_max_unpool(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, unpooled_shape(c));
  if (c.shape(1) != c.shape(0) || c.dtype(1) != DType::kI64)
    return c.fail("indices {} {} for data of shape {}", dtype_name(c.dtype(1)),
                  to_string(c.shape(1)), to_string(c.shape(0)));
  if (c.has(2)) {
    HONE_ASSIGN_OR_RETURN(const Shape given, c.integers(2, "the output shape"));
    bool fits = given.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = d < 2 ? given[d] == shape[d] : given[d] >= shape[d];
    if (!fits) return c.fail("the output shape is {}", to_string(given));
    shape = given;
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

// Indices count in the shape that the attributes give, also where the result is larger.
void emit_max_unpool(EmitContext& c) {
  const auto counted = unpooled_shape(InferContext(const_cast<Graph&>(c.graph()), c.node()));
  HONE_ASSERT(counted.ok(), "the shape rule has checked the window");
  const Shape& shape = c.result().shape;
  const Shape& data = c.input(0).shape;
  const std::vector<Axis> planes = axes_of(shape, 0, 2), all = axes_of(shape, 2, shape.size());
  const std::vector<Axis> pooled = axes_of(data, 2, data.size());
  const int64_t plane = num_elements(Shape(counted->begin() + 2, counted->end()));
  c.body("max_unpool", planes, [&](const std::vector<Expr>& point) {
    const auto at = [&](const std::vector<Axis>& axes) {
      std::vector<Expr> index = point;
      for (const Expr& i : compute::variables(axes)) index.push_back(i);
      return index;
    };
    const Expr index = c.read(1, "indices", at(pooled)) - (point[0] * shape[1] + point[1]) * plane;
    std::vector<Expr> to = point;
    int64_t stride = plane;
    for (size_t d = 2; d < shape.size(); ++d) {
      stride /= (*counted)[d];
      to.push_back(ir::floormod(ir::floordiv(index, stride), (*counted)[d]));
    }
    const Expr element = c.read(0, "data", at(pooled));
    return std::vector{
        loops_over(all, {c.store(0, at(all), literal(element->type, 0))}),
        loops_over(pooled, {ir::make_if(inside(index, plane), {c.store(0, to, element)})})};
  });
}

struct Blocks {
  Shape image, kernel, stride, dilation, pad, count;
};

Result<Blocks> blocks_of(const InferContext& c) {
  Blocks b;
  HONE_ASSIGN_OR_RETURN(b.image, c.integers(1, "the image shape"));
  HONE_ASSIGN_OR_RETURN(b.kernel, c.integers(2, "the block shape"));
  const size_t rank = b.image.size();
  b.stride = c.attributes().integers("strides", Shape(rank, 1));
  b.dilation = c.attributes().integers("dilations", Shape(rank, 1));
  b.pad = c.attributes().integers("pads", Shape(2 * rank, 0));
  bool fits = c.rank(0) == 3 && b.kernel.size() == rank && b.stride.size() == rank &&
              b.dilation.size() == rank && b.pad.size() == 2 * rank && are_from(1, b.image) &&
              are_from(1, b.kernel) && are_from(1, b.stride) && are_from(1, b.dilation) &&
              are_from(0, b.pad) && is_valid(b.kernel);
  for (size_t d = 0; fits && d < rank; ++d) {
    const int64_t room =
        b.image[d] + b.pad[d] + b.pad[rank + d] - b.dilation[d] * (b.kernel[d] - 1) - 1;
    b.count.push_back(room < 0 ? 0 : room / b.stride[d] + 1);
  }
  fits = fits && is_valid(b.count);
  if (!fits || c.shape(0)[2] != num_elements(b.count) ||
      c.shape(0)[1] % num_elements(b.kernel) != 0) {
    return c.fail("data of shape {} for an image {} and blocks {}", to_string(c.shape(0)),
                  to_string(b.image), to_string(b.kernel));
  }
  return b;
}

Status infer_col2im(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const Blocks b, blocks_of(c));
  Shape shape = {c.shape(0)[0], c.shape(0)[1] / num_elements(b.kernel)};
  shape.insert(shape.end(), b.image.begin(), b.image.end());
  return c.set(0, c.dtype(0), std::move(shape));
}

void emit_col2im(EmitContext& c) {
  const auto b = blocks_of(InferContext(const_cast<Graph&>(c.graph()), c.node()));
  HONE_ASSERT(b.ok(), "the shape rule has checked the blocks");
  const Shape& shape = c.result().shape;
  const std::vector<Axis> all = axes_of(shape, 2, shape.size());
  std::vector<Axis> loops;
  for (size_t d = 0; d < b->kernel.size(); ++d)
    loops.push_back(compute::make_axis(fmt::format("k{}", d), b->kernel[d]));
  for (size_t d = 0; d < b->kernel.size(); ++d)
    loops.push_back(compute::make_axis(fmt::format("b{}", d), b->count[d]));
  c.body("col2im", axes_of(shape, 0, 2), [&](const std::vector<Expr>& point) {
    std::vector<Expr> pixel = point, to = point;
    for (const Expr& i : compute::variables(all)) pixel.push_back(i);
    Expr row = point[1], column = ir::constant(0), within = ir::constant_bool(true);
    for (size_t d = 0; d < b->kernel.size(); ++d) {
      const Expr k = ir::variable(loops[d].var), at = ir::variable(loops[b->kernel.size() + d].var);
      row = row * b->kernel[d] + k;
      column = column * b->count[d] + at;
      to.push_back(at * b->stride[d] + k * b->dilation[d] - b->pad[d]);
      within = ir::logical_and(within, inside(to.back(), b->image[d]));
    }
    const Expr element = c.read(0, "data", {point[0], row, column});
    return std::vector{
        loops_over(all, {c.store(0, pixel, literal(element->type, 0))}),
        loops_over(loops, {ir::make_if(within, {c.store(0, to, c.read_result(0, to) + element)})})};
  });
}

}  // namespace

std::span<const Op> unpool_ops() {
  static const Op ops[] = {
      {.name = "hone.MaxPoolIndices",
       .max_outputs = 2,
       .attributes =
           "auto_pad:s ceil_mode:i dilations:is kernel_shape:is pads:is storage_order:i strides:is",
       .infer = infer_max_pool_indices,
       .fold = evaluate_node,
       .emit = emit_max_pool_indices},
      {.name = "MaxUnpool",
       .since = 9,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = "kernel_shape:is pads:is strides:is",
       .infer = infer_max_unpool,
       .fold = evaluate_node,
       .emit = emit_max_unpool},
      {.name = "Col2Im",
       .since = 18,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = "dilations:is pads:is strides:is",
       .infer = infer_col2im,
       .fold = evaluate_node,
       .emit = emit_col2im},
  };
  return ops;
}

}  // namespace hone::graph
