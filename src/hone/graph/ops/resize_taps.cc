#include "hone/graph/ops/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace hone::graph {
namespace {

constexpr double kMaxTaps = 1 << 24;

bool one_of(const std::string& name, std::initializer_list<const char*> known) {
  return std::any_of(known.begin(), known.end(), [&](const char* k) { return name == k; });
}

// The place in the data, a real number, of an element of the result.
double source_of(const ResizeMode& mode, const ResizeAxis& axis, double x) {
  const auto n = static_cast<double>(axis.input);
  const double resized = axis.scale * n;  // not rounded
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (mode.coordinates == "align_corners") return resized == 1 ? 0 : x * (n - 1) / (resized - 1);
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "pytorch_half_pixel") return resized == 1 ? 0 : half_pixel;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.output) / resized;
    return n / 2 * (1 - adjustment) + half_pixel;
  }
  if (mode.coordinates == "tf_crop_and_resize") {
    const double span = axis.roi_end - axis.roi_start;
    return axis.roi_start * (n - 1) +
           (resized == 1 ? span * (n - 1) / 2 : x * span * (n - 1) / (resized - 1));
  }
  return half_pixel;
}

double nearest(const std::string& rounding, double x) {
  if (rounding == "floor") return std::floor(x);
  if (rounding == "ceil") return std::ceil(x);
  if (rounding == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

double cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

}  // namespace

Status ResizeMode::check() const {
  if (!one_of(mode, {"nearest", "linear", "cubic"})) return invalid("mode '{}'", mode);
  if (!one_of(coordinates,
              {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
               "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"})) {
    return invalid("coordinate_transformation_mode '{}'", coordinates);
  }
  if (!one_of(rounding, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return invalid("nearest_mode '{}'", rounding);
  return ok_status();
}

Result<Taps> make_taps(const ResizeMode& mode, const ResizeAxis& axis) {
  Taps taps;
  // Antialiasing widens the filter where the data shrinks.
  const double narrow = mode.antialias ? std::min(1.0, axis.scale) : 1;
  const double reach = std::floor((mode.mode == "cubic" ? -2 : -1) / narrow) + 1;
  const double count = mode.mode == "nearest" ? 1 : 2 - 2 * reach;
  if (axis.output < 1 || !(count * static_cast<double>(axis.output) <= kMaxTaps))
    return invalid("{} elements resized to {}", axis.input, axis.output);
  const auto first = static_cast<int64_t>(reach);
  taps.count = static_cast<int64_t>(count);
  for (int64_t o = 0; o < axis.output; ++o) {
    const double x = source_of(mode, axis, static_cast<double>(o));
    taps.outside.push_back(mode.coordinates == "tf_crop_and_resize" &&
                           (x < 0 || x > static_cast<double>(axis.input - 1)));
    const auto place = [&](double at) {
      const auto last = static_cast<double>(axis.input - 1);
      return at > 0 ? static_cast<int64_t>(std::min(at, last)) : 0;  // 0 for NaN, too
    };
    if (mode.mode == "nearest") {
      taps.index.push_back(place(nearest(mode.rounding, x)));
      taps.weight.push_back(1);
      continue;
    }
    const double base = std::ceil(x) - 1;  // left of x, also where x is an element
    double sum = 0;
    for (int64_t k = 0; k < taps.count; ++k) {
      const double at = base + static_cast<double>(first + k);
      const double distance = (at - x) * narrow;
      double weight = mode.mode == "cubic" ? cubic(distance, mode.cubic_a)
                                           : std::max(0.0, 1 - std::abs(distance));
      if (mode.exclude_outside && (at < 0 || at >= static_cast<double>(axis.input))) weight = 0;
      sum += weight;
      taps.index.push_back(place(at));
      taps.weight.push_back(weight);
    }
    for (int64_t k = 0; k < taps.count && sum != 0; ++k)
      taps.weight[taps.weight.size() - 1 - static_cast<size_t>(k)] /= sum;
  }
  return taps;
}

}  // namespace hone::graph
