// graph/propagate_dynamic_shapes.h - helpers of the operators that follow values whose shape
// depends on data (extents.h), for propagate_*.cc and for expansions.
#pragma once

#include <optional>
#include <vector>

#include "hone/graph/extents.h"

namespace hone::graph {

// Returns whether the shape of operand i depends on data.
[[nodiscard]] bool varies(const ExpandContext& c, size_t i);
// Returns the extent of a dimension of operand i if it does not depend on data.
[[nodiscard]] std::optional<int64_t> known_extent(const ExpandContext& c, size_t i, size_t d);
// Returns whether data decide the extent of a dimension of operand i.
[[nodiscard]] bool is_decided(const ExpandContext& c, size_t i, size_t d);
// Returns whether a fixed extent of operand i may stand for the one that a run has: operators that
// are made of others make constants of the largest shape.
[[nodiscard]] bool stands_for_run(const ExpandContext& c, size_t i);
// Returns one of the extents, as a vector of one element.
[[nodiscard]] ValueId dimension(ExpandContext& c, ValueId extents, int64_t d);
// Returns an extent that is never 0: where it was, there are no elements.
[[nodiscard]] ValueId divisor(ExpandContext& c, ValueId extent);
// Returns an extent as a vector of one element.
[[nodiscard]] ValueId extent_of(ExpandContext& c, const ExtentPart& part);
// Returns an extent that data decide. A run in which another operand has not as many of `what`
// there ends with an error that names the node.
[[nodiscard]] Result<ExtentPart> checked_extent(ExpandContext& c, const ExtentPart& part,
                                                const ExtentPart& other, std::string_view what);
// Returns the places 0, 1, ... along one dimension of a shape, which broadcast to it.
[[nodiscard]] ValueId places_along(ExpandContext& c, const Shape& shape, size_t d);
// Returns the elements of x, in their order, as a vector.
[[nodiscard]] ValueId as_list(ExpandContext& c, ValueId x);
// Returns x with `fill` behind its extents, and then without extents.
[[nodiscard]] ValueId filled(ExpandContext& c, ValueId x, double fill);
// Likewise, where `fill` is a value of rank 0.
[[nodiscard]] ValueId filled_with(ExpandContext& c, ValueId x, ValueId fill);
// Returns indices that point to the first element where they stand behind their own extents.
[[nodiscard]] ValueId safe_indices(ExpandContext& c, ValueId indices);

// Returns places from the beginning for such as may be below 0, which count from the end.
[[nodiscard]] ValueId from_begin(ExpandContext& c, ValueId place, ValueId extent);
// Likewise indices, by extents of any type.
[[nodiscard]] ValueId indices_from_begin(ExpandContext& c, ValueId indices, ValueId extents);

// Returns the extents of the dimensions begin .. end of x.
[[nodiscard]] std::vector<ExtentPart> parts(ExpandContext& c, ValueId x, size_t begin, size_t end);
// Returns the extent of a dimension, as a number if it is known.
[[nodiscard]] ExtentPart part_of(ExpandContext& c, ValueId x, size_t d);
// Returns a number for an extent that is known.
[[nodiscard]] ExtentPart as_number(const ExpandContext& c, const ExtentPart& part);
// Returns whether two extents are surely equal: one element, or one number.
[[nodiscard]] bool are_same(const ExpandContext& c, const ExtentPart& a, const ExtentPart& b);
[[nodiscard]] std::vector<ExtentPart> joined(std::vector<ExtentPart> a,
                                             const std::vector<ExtentPart>& b);
// Returns the largest shape that an operand, which is a shape, gives.
[[nodiscard]] Result<Shape> largest_shape(ExpandContext& c, size_t operand);
[[nodiscard]] Result<size_t> axis_of(const ExpandContext& c, int64_t otherwise, size_t rank);

// Operators that repeat elements. A pointwise one returns false, with nothing built, if extents
// that may be 1 in a run decide nothing.
[[nodiscard]] Result<bool> propagate_pointwise(ExpandContext& c);
[[nodiscard]] Status propagate_expand(ExpandContext& c);
[[nodiscard]] Status propagate_matmul(ExpandContext& c);
// Operators whose results do not depend on each other along what data decide. It returns false if
// the operator is none of these.
[[nodiscard]] Result<bool> propagate_rows(ExpandContext& c);
// Returns false, with nothing built, if the operator is no Squeeze of dimensions that data decide.
[[nodiscard]] Result<bool> propagate_squeeze(ExpandContext& c);
// Some of these, where data decide other dimensions, too.
[[nodiscard]] Status propagate_average_pool(ExpandContext& c);
[[nodiscard]] Status propagate_convolution(ExpandContext& c);
[[nodiscard]] Status propagate_gemm(ExpandContext& c);
[[nodiscard]] Status propagate_global_average(ExpandContext& c);
[[nodiscard]] Status propagate_global_max(ExpandContext& c);
[[nodiscard]] Status propagate_max_pool(ExpandContext& c);
// Operators that repeat elements.
[[nodiscard]] Status propagate_center_crop_pad(ExpandContext& c);
[[nodiscard]] Status propagate_einsum(ExpandContext& c);
[[nodiscard]] Status propagate_gather_elements(ExpandContext& c);
[[nodiscard]] Status propagate_pad(ExpandContext& c);
[[nodiscard]] Status propagate_tile(ExpandContext& c);
// An operator that puts values side by side. A run fails in which they do not fit.
[[nodiscard]] Status propagate_concat(ExpandContext& c);
// An operator whose result has as many elements as a run computes.
[[nodiscard]] Status propagate_range(ExpandContext& c);
// Operators that move elements to other places.
[[nodiscard]] Status propagate_flatten(ExpandContext& c);
[[nodiscard]] Status propagate_reshape(ExpandContext& c);
[[nodiscard]] Status propagate_scatter_elements(ExpandContext& c);
[[nodiscard]] Status propagate_scatter_nd(ExpandContext& c);
[[nodiscard]] Status propagate_slice(ExpandContext& c);
// Reductions.
[[nodiscard]] Status propagate_arg_max(ExpandContext& c);
[[nodiscard]] Status propagate_arg_min(ExpandContext& c);
[[nodiscard]] Status propagate_mean(ExpandContext& c);
[[nodiscard]] Status propagate_reduce_log_sum_exp(ExpandContext& c);
[[nodiscard]] Status propagate_reduce_max(ExpandContext& c);
[[nodiscard]] Status propagate_reduce_min(ExpandContext& c);
[[nodiscard]] Status propagate_reduce_of_zeros(ExpandContext& c);  // to which zeros add nothing
[[nodiscard]] Status propagate_reduce_prod(ExpandContext& c);
[[nodiscard]] Status propagate_reduce_sum(ExpandContext& c);

}  // namespace hone::graph
