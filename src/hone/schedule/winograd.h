// schedule/winograd.h - Winograd's minimal filtering for a convolution stage (Lavin and Gray 2016).
// Tiles of `outputs` results need outputs + taps - 1 products per dimension.
//
// A stride s divides the data into s phases: results are sums of s filters of stride 1, the p-th
// over the places p, p + s, ... with the taps p, p + s, ... The matrices are those of the phases
// side by side, with s (outputs - 1) + taps products instead of outputs * taps. F(4, 3) of stride 2
// has 5 + 4 instead of 12, in two dimensions 81 instead of 144.
//
//   Y = A' [ (G g G') . (B' d B) ] A
//
// The step replaces the stage conv by stages that are computed one dimension at a time:
//   conv.u1, conv.u  the weights' transform (constant: runs at compile time)
//   conv.v1, conv.v  the data's transform, by tile
//   conv.m           products summed over the input channels: one matrix product per point
//   conv.y1, conv    back, written as whole tiles into a buffer that is rounded up to them
// For dimension "oh" the axes are: oh_x, the point; oh_t, the tile; oh_i, the place in the tile.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// The row-major matrices of F(outputs, taps), by interpolation at 0, 1, -1, 2, -2, 1/2, -1/2,
// infinity. `points` is the number of products, and of elements of the data that a tile reads.
struct WinogradMatrices {
  int64_t outputs, taps, points;
  std::vector<double> data;     // B', points x points
  std::vector<double> weights;  // G, points x taps
  std::vector<double> inverse;  // A', outputs x points
};
// With more points per phase, float32 loses too many digits.
inline constexpr int64_t kMaxWinogradPoints = 8;
[[nodiscard]] WinogradMatrices winograd_matrices(int64_t outputs, int64_t taps, int64_t stride = 1);

// A dimension that a convolution slides along.
struct WinogradDim {
  std::string axis, tap;  // names of the spatial and the reduce axis, such as "oh" and "kh"
  int64_t extent, taps, stride;

  [[nodiscard]] int64_t points(int64_t outputs) const { return stride * (outputs - 1) + taps; }
  // Returns whether tiles of this many results are accurate enough; `outputs` must be at least 2.
  [[nodiscard]] bool allows(int64_t outputs) const {
    return outputs >= 2 && outputs + (taps + stride - 1) / stride - 1 <= kMaxWinogradPoints;
  }
};
// Returns the one or two such dimensions that have more taps than their stride; empty if the stage
// is no such convolution.
[[nodiscard]] std::vector<WinogradDim> winograd_dims(const State& state, int stage);

[[nodiscard]] Status apply_winograd(const Winograd& step, State& state);

}  // namespace hone::schedule
