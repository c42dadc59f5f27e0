// graph/size_testing.h - the operands of a graph whose inputs vary, at some sizes of its ranges.
#pragma once

#include <functional>

#include "hone/graph/graph.h"

namespace hone::graph {

// Calls `visit` with the place of each element of a box in dense arrays of the shapes `box` and
// `whole`.
void visit_box(const Shape& box, const Shape& whole,
               const std::function<void(int64_t in_box, int64_t in_whole)>& visit);
// Returns the tensor in an array of a larger shape, with garbage behind it: NaN or -1e9.
[[nodiscard]] Tensor enlarged(const Tensor& tensor, const Shape& shape);
// Returns where the elements of a run lie in a value of these parts: a box of an array, with one
// dimension for each part. `shape` is that of a value without parts.
struct Boxes {
  Shape box, whole;
};
[[nodiscard]] Boxes boxes_of(const ShapeParts& parts, const Shape& shape,
                             const std::vector<int64_t>& sizes);
// Returns the value of the input `hone.sizes`.
[[nodiscard]] Tensor sizes_at(const Graph& graph, const std::vector<int64_t>& symbols);

}  // namespace hone::graph
