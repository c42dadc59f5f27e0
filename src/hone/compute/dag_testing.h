// compute/dag_testing.h - small Dags of the usual kernel classes, for tests and benchmarks: the
// library hone_compute_testing.
#pragma once

#include <optional>

#include "hone/compute/dag.h"

namespace hone::compute::testing {

// Builds a Dag that is known to be right.
Dag finish(DagBuilder&& builder);

// out[m, n] = sum over k of data[m, k] * weight[k, n]
Dag gemm(int64_t m, int64_t n, int64_t k);

// out[m, n] = sum over k of data[m, k] * weight[k, n] + bias[n] in 16 bits with sums in float32, as
// tasks of half-precision models have it. The operands may lie transposed.
struct HalfProduct {
  DType type = DType::kF16;
  bool transposed_data = false, transposed_weight = false;
  int64_t batch = 0;  // products of several matrices with the same weight; 0: one, without an axis
};
Dag half_gemm(int64_t m, int64_t n, int64_t k, const HalfProduct& how = {});

// The product of left[batch, m, k] and right[batch, k, n], both of which are inputs.
Dag product_of_two(int64_t batch, int64_t m, int64_t n, int64_t k);

// out[m, n] = sum over k of weight[m, k] * data[k, n], or of rows[k, m] * data[k, n].
Dag few_columns(int64_t m, int64_t n, int64_t k, bool transposed);

struct ConvShape {
  int64_t h = 7, w = 7;  // extents of the input without border
  int64_t ic = 3, oc = 8;
  int64_t kernel = 3, stride = 1, pad = 1;
  int64_t border = 1;  // width around the output
  bool residual = false;
  int64_t kernel_w = 0;  // as `kernel` if 0
};

// NHWC convolution + bias (+ residual) + relu on an input with a border, into an output with a
// border.
Dag conv2d(const ConvShape& s);

// NHWC 3x3 convolution + relu with groups of ic to oc channels, on an input with a border.
Dag grouped_conv2d(int64_t h, int64_t w, int64_t groups, int64_t ic, int64_t oc, int64_t stride);

// NHWC depthwise 3x3 convolution + relu.
Dag depthwise(int64_t h, int64_t w, int64_t c, int64_t stride);

// NHWC max pooling 3x3 stride 2, padding by a guard.
Dag max_pool(int64_t h, int64_t w, int64_t c);

// Mean over height and width: [1, h, w, c] -> [1, c].
Dag global_pool(int64_t h, int64_t w, int64_t c);

// Softmax over the middle dimension of [outer, n, inner] by its steps: maximum, exponentials, their
// sum, quotients.
Dag softmax(int64_t outer, int64_t n, int64_t inner);

// Subtracts from each row of [rows, n] its mean.
Dag centred_rows(int64_t rows, int64_t n);

// Subtracts from each row of [rows, n] its mean and divides the result by the root of its mean
// square.
Dag normalized_rows(int64_t rows, int64_t n);

// A 3x3 depthwise convolution with relu on an input with a border, then a product over its channels
// with a bias.
Dag separable(int64_t h, int64_t w, int64_t c, int64_t oc);

// softmax(q k + mask) v per head, where q and v are [m, heads, depth] and k is [heads, depth, n].
// With an offset, query m sees keys up to m + offset, and the reductions end there (Stage::until).
Dag attention(int64_t heads, int64_t m, int64_t n, int64_t depth,
              std::optional<int64_t> offset = {});

// An extern stage: running sums along the rows of [rows, n]. With `columns`, that many sums run
// side by side, one element apart.
Dag running_sum(int64_t rows, int64_t n, std::optional<int64_t> columns = {});

// An index into `extent` elements, as operators make it of data.
ir::Expr clamped(const ir::Expr& index, int64_t extent);

// Rows of a table: out[i, j] = data[indices[i], j], a body for each i.
Dag gather_rows(int64_t rows, int64_t n, int64_t table);

// out = data, and then rows of it, one after the other: out[indices[u], j] += updates[u, j].
Dag add_rows(int64_t rows, int64_t n, int64_t updates);

// Argmax of n elements down each column, together with the maximum.
Dag arg_max(int64_t rows, int64_t n, int64_t columns);

Dag transpose(int64_t c, int64_t h, int64_t w, int64_t border);

Dag sum_of_two(int64_t rows, int64_t n);

// 0 <= index < extent
ir::Expr within(const ir::Expr& index, int64_t extent);

// Inverted residual block: expand 1x1, depthwise 3x3, project 1x1.
Dag inverted_residual(int64_t h, int64_t w, int64_t ci, int64_t ce, int64_t co);

}  // namespace hone::compute::testing
