// graph/ops/resize.h - the geometry of a Resize or Upsample node: its mode, and for each axis the
// extents and the factor.
#pragma once

#include "hone/graph/op.h"
#include "hone/graph/ops/resize_taps.h"

namespace hone::graph {

struct ResizeGeometry {
  ResizeMode mode;
  std::vector<ResizeAxis> axes;  // one per dimension
  double extrapolation = 0;
};
// Reads attributes and operands, which have to be known.
[[nodiscard]] Result<ResizeGeometry> resize_geometry(const InferContext& c);

}  // namespace hone::graph
