#include "hone/commands/check/compare.h"

#include <algorithm>
#include <cmath>

#include "hone/base/status.h"
#include "hone/commands/check/value_kinds.h"
#include "hone/tensor/half_tensor.h"

namespace hone {
namespace {

Shape point_at(int64_t flat, const Shape& shape) {
  Shape point(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    point[d] = flat % shape[d];
    flat /= shape[d];
  }
  return point;
}

}  // namespace

std::optional<Divergence> compare(const Tensor& found, const Tensor& expected, double tolerance,
                                  double& error) {
  Divergence result;
  result.elements = expected.size();
  error = 0;
  // Values of half types are kept in float32 (widen_halves), and weights in half types again.
  const bool widened = is_half(expected.dtype()) && found.dtype() == DType::kF32;
  if ((found.dtype() != expected.dtype() && !widened) || found.shape() != expected.shape()) {
    result.problem = fmt::format("found {} {}, expected {} {}", dtype_name(found.dtype()),
                                 to_string(found.shape()), dtype_name(expected.dtype()),
                                 to_string(expected.shape()));
    result.error = HUGE_VAL;
    return result;
  }
  const bool real = is_real(expected.dtype());
  const double allowed = allowed_difference(expected.dtype(), tolerance);
  double largest = 0;
  for (int64_t i = 0; real && i < expected.size(); ++i) {
    const double magnitude = std::abs(expected.at(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  int64_t place = -1;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = found.at(i), b = expected.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    // Infinite: one is an infinity or no number, and the other is not the same.
    double difference = std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : HUGE_VAL;
    if (largest > 0) difference /= largest;
    if (difference > allowed && (result.wrong++ == 0 || difference > error)) place = i;
    if (real || difference > allowed) error = std::max(error, difference);
  }
  if (result.wrong == 0) return std::nullopt;
  result.index = point_at(place, expected.shape());
  result.found = found.at(place);
  result.expected = expected.at(place);
  result.error = error;
  return result;
}

}  // namespace hone
