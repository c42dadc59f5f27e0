// schedule/strassen.h - Strassen's algorithm (1969) for a matrix product with constant weights.
// Rows, the sum and columns are each divided into two halves, and seven products of halves replace
// eight. The sums of the weights are made at compile time; those of data and results are cheap if
// all three extents are large.
//
//   conv.u1, conv.u  the weights' halves, their seven sums (constant: runs at compile time)
//   conv.v           the data's seven sums
//   conv.m           seven matrix products
//   conv             their sums, two rows and twice `lanes` columns side by side
//
// Rows are halved by parity, columns by the parity of their vector of `lanes`, so that elements
// that are combined are close in memory; the sum is halved in the middle. An odd number of rows is
// padded by a row of zeros. The axes are: oh_x, which of the seven products (named after the rows'
// axis); oh, a pair of rows; oh_i, which row of the pair; oc_t, a pair of vectors of columns; oc_j,
// which vector of the pair; oc, the lane. In conv.u and conv.m, oc is the column of a half.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// Returns the rows of a stage's matrix product: spatial axes of several points that only its data
// depend on. The result is empty if the stage is no product with constant weights that can be
// halved.
[[nodiscard]] std::vector<compute::Axis> strassen_rows(const State& state, int stage,
                                                       int64_t lanes);

[[nodiscard]] Status apply_strassen(const Strassen& step, State& state);

}  // namespace hone::schedule
