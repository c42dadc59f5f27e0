// graph/ops/resize_taps.h - along one axis, the elements that each element of a resized value is
// the weighted sum of. Resizing is separable, so this is all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::graph {

struct ResizeMode {
  std::string mode = "nearest";  // linear, cubic
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";  // of nearest
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  [[nodiscard]] Status check() const;  // of the names
};

struct ResizeAxis {
  int64_t input = 1, output = 1;
  double scale = 1;
  double roi_start = 0, roi_end = 1;  // of tf_crop_and_resize
};

struct Taps {
  int64_t count = 1;           // per element of the result
  std::vector<int64_t> index;  // [output, count], inside the data
  std::vector<double> weight;  // [output, count]
  std::vector<bool> outside;   // [output]: what is not in the data at all (tf_crop_and_resize)
};

// An error if there would be too many.
[[nodiscard]] Result<Taps> make_taps(const ResizeMode& mode, const ResizeAxis& axis);

}  // namespace hone::graph
