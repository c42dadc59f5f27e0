// schedule/winograd.h - Winograd's minimal filtering for a convolution stage of stride 1 (Lavin and
// Gray 2016): tiles of `outputs` results from outputs + taps - 1 products per dimension.
//
//   Y = A' [ (G g G') . (B' d B) ] A
//
// The step turns  conv  into stages that are computed one dimension at a time:
//   conv.u1, conv.u  the weights' transform (constant: runs at compile time)
//   conv.v1, conv.v  the data's transform, by tile
//   conv.m           products summed over the input channels: one matrix product per point
//   conv.y1, conv    back, written as whole tiles into a buffer that is rounded up to them
// Axes of dimension "oh": oh_x the point, oh_t the tile, oh_i the place in the tile.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// Matrices of F(outputs, taps), row-major, by interpolation at 0, 1, -1, 2, -2, 1/2, -1/2,
// infinity.
struct WinogradMatrices {
  int64_t outputs, taps, points;
  std::vector<double> data;     // B', points x points
  std::vector<double> weights;  // G, points x taps
  std::vector<double> inverse;  // A', outputs x points
};
inline constexpr int64_t kMaxWinogradPoints = 8;  // beyond, float32 loses too many digits
[[nodiscard]] WinogradMatrices winograd_matrices(int64_t outputs, int64_t taps);

// A dimension that a convolution slides along with stride 1.
struct WinogradDim {
  std::string axis, tap;  // names of the spatial and the reduce axis: "oh", "kh"
  int64_t extent, taps;
};
// The one or two such dimensions with more than one tap; empty if the stage is no such convolution.
[[nodiscard]] std::vector<WinogradDim> winograd_dims(const State& state, int stage);

[[nodiscard]] Status apply_winograd(const Winograd& step, State& state);

}  // namespace hone::schedule
