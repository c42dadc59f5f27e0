// graph/ops/resize_taps.h - the elements along one axis of which each element of a resized value is
// the weighted sum. Resizing is separable, so one axis at a time is enough.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone::graph {

struct ResizeMode {
  std::string mode = "nearest";  // or "linear", "cubic"
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";  // for nearest
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  [[nodiscard]] Status check() const;  // checks the names
};

struct ResizeAxis {
  int64_t input = 1, output = 1;
  double scale = 1;
  double roi_start = 0, roi_end = 1;  // for tf_crop_and_resize
};

struct Taps {
  int64_t count = 1;           // taps per element of the result
  std::vector<int64_t> index;  // [output, count], positions inside the data
  std::vector<double> weight;  // [output, count]
  // [output]: elements that are entirely outside the data (tf_crop_and_resize).
  std::vector<bool> outside;
};

// Makes the taps. It is an error if there would be too many.
[[nodiscard]] Result<Taps> make_taps(const ResizeMode& mode, const ResizeAxis& axis);

}  // namespace hone::graph
