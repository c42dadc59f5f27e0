// schedule/strassen.h - Strassen's algorithm (1969) for a matrix product with constant weights:
// rows, the sum and columns in two halves each, and seven products of halves for eight. The
// weights' sums are made at compile time; data's and results' are few where all three extents are
// large.
//
//   conv.u1, conv.u  the weights' halves, their seven sums (constant: runs at compile time)
//   conv.v           the data's seven sums
//   conv.m           seven matrix products
//   conv             their sums, two rows and twice `lanes` columns side by side
//
// Rows are halved by their parity, columns by that of their vector of `lanes`, so that what belongs
// together lies together; the sum in the middle. An odd number of rows has one of zeros more. Axes:
// oh_x which of the seven (named after the rows' axis), oh a pair of rows, oh_i which of them; oc_t
// a pair of vectors of columns, oc_j which of them, oc the lane; in conv.u and conv.m oc is the
// column of a half.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// The rows of a stage's matrix product: spatial axes of several points that only its data move
// with; empty if the stage is no product with constant weights that can be halved.
[[nodiscard]] std::vector<compute::Axis> strassen_rows(const State& state, int stage,
                                                       int64_t lanes);

[[nodiscard]] Status apply_strassen(const Strassen& step, State& state);

}  // namespace hone::schedule
