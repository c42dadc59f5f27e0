// space/rules/cpu/bilinear.h - sketches of algorithms that exchange products for sums
// (schedule/bilinear.h; internal to space), their stages fused over blocks of tiles. E is the
// pointwise epilogue:
//
//   parallel shares of the output channels, blocks of tiles:
//     conv.v: the data's transform of the block, kept in the cache
//     blocks of output channels:
//       conv.m: one matrix product per point, around a register tile
//       tiles of the block, vectors of channels:
//         conv.y1, conv: the transform back, in registers
//         E: bias, activation, residual, store
//
// The weights' transform runs at compile time and is packed in the order of the products' loops.
#pragma once

#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {

struct Bilinear {
  struct Tiled {
    std::string axis;  // axis of the convolution or product
    int64_t outputs;   // results per tile
  };
  schedule::Step step;
  std::vector<Tiled> tiled;
  int64_t points = 1;          // number of matrix products
  size_t point_axes = 1;       // leading axes of the stages, which index the products
  int64_t channel_places = 1;  // vectors of channels that a tile has, side by side
};
// Adds a sketch that computes the task's reduction by the algorithm, with its epilogue.
[[nodiscard]] Fit add_bilinear(SketchBuilder& builder, const Task& task, const Bilinear& algorithm);

}  // namespace hone::space
