// Constants of signal processing that do not depend on data: the windows of Hann, Hamming and
// Blackman, and the matrix of mel weights.
#include <cmath>
#include <numbers>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/type_code.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

Result<DType> result_type(const InferContext& c) {
  const int64_t code = c.attributes().integer("output_datatype", 1);
  const auto dtype = type_of_code(code);
  if (!dtype || *dtype == DType::kBool || is_small(*dtype))
    return c.unsupported("output_datatype is {}", type_code_text(code));
  return *dtype;
}

Result<int64_t> positive(const InferContext& c, size_t i, const char* what) {
  HONE_ASSIGN_OR_RETURN(const auto values, c.integers(i, what));
  if (values.size() != 1 || values[0] < 0 || values[0] > 1 << 24)
    return c.fail("{} is {}", what, to_string(values));
  return values[0];
}

// a + b * cos(2 pi n / N) + d * cos(4 pi n / N)
Status set_window(InferContext& c, double a, double b, double d) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, positive(c, 0, "size"));
  HONE_ASSIGN_OR_RETURN(const DType dtype, result_type(c));
  const bool periodic = c.attributes().integer("periodic", 1) != 0;
  const auto period = static_cast<double>(periodic ? size : size - 1);
  HONE_ASSIGN_OR_RETURN(Tensor window, c.new_numbers(dtype, {size}, kUniformsOfFunction));
  for (int64_t n = 0; n < size; ++n) {
    const double angle = period > 0 ? 2 * std::numbers::pi * static_cast<double>(n) / period : 0;
    window.set(n, a + b * std::cos(angle) + d * std::cos(2 * angle));
  }
  return c.set_constant(0, std::move(window));
}

Status infer_hann(InferContext& c) { return set_window(c, 0.5, -0.5, 0); }
Status infer_hamming(InferContext& c) { return set_window(c, 25.0 / 46, -21.0 / 46, 0); }
Status infer_blackman(InferContext& c) { return set_window(c, 0.42, -0.5, 0.08); }

Result<double> frequency(const InferContext& c, size_t i, const char* what) {
  HONE_ASSIGN_OR_RETURN(const Tensor* const value, c.required(i, what));
  if (value->size() != 1) return c.fail("{} has {} elements", what, value->size());
  return value->at(0);
}

// Triangles over the bins of a spectrum, whose corners are equally far apart in mel and rounded
// down to bins.
Status infer_mel(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t bands, positive(c, 0, "num_mel_bins"));
  HONE_ASSIGN_OR_RETURN(const int64_t length, positive(c, 1, "dft_length"));
  HONE_ASSIGN_OR_RETURN(const int64_t rate, positive(c, 2, "sample_rate"));
  HONE_ASSIGN_OR_RETURN(const double low, frequency(c, 3, "lower_edge_hertz"));
  HONE_ASSIGN_OR_RETURN(const double high, frequency(c, 4, "upper_edge_hertz"));
  HONE_ASSIGN_OR_RETURN(const DType dtype, result_type(c));
  if (rate < 1 || !(low >= 0) || !(high >= low) || !std::isfinite(high)) {
    return c.fail("sample_rate {}, edges {} and {}", rate, low, high);
  }
  const int64_t bins = length / 2 + 1;
  HONE_ASSIGN_OR_RETURN(Tensor weights, c.new_numbers(dtype, {bins, bands}, kUniformsOfFunction));
  const auto to_mel = [](double hertz) {
    return 2595 * std::log1p(hertz / 700) / std::numbers::ln10;
  };
  const double first = to_mel(low);
  const double step = (to_mel(high) - first) / static_cast<double>(bands + 2);
  constexpr double kFarBin = 0x1p62;  // behind all bins, and an int64_t
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double mel = first + step * static_cast<double>(i);
    const double hertz = 700 * std::expm1(mel / 2595 * std::numbers::ln10);
    const double bin =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    corners.push_back(static_cast<int64_t>(std::min(bin, kFarBin)));
  }
  const auto put = [&](int64_t bin, int64_t band, double value) {
    if (bin >= 0 && bin < bins) weights.set(bin * bands + band, value);
  };
  for (int64_t band = 0; band < bands; ++band) {
    const auto at = static_cast<size_t>(band);
    const int64_t left = corners[at], peak = corners[at + 1], right = corners[at + 2];
    if (left == peak) put(peak, band, 1);
    for (int64_t bin = left; left < peak && bin <= std::min(peak, bins - 1); ++bin)
      put(bin, band, static_cast<double>(bin - left) / static_cast<double>(peak - left));
    for (int64_t bin = peak; peak < right && bin < std::min(right, bins); ++bin)
      put(bin, band, static_cast<double>(right - bin) / static_cast<double>(right - peak));
  }
  return c.set_constant(0, std::move(weights));
}

Op window(const char* name, Status (*infer)(InferContext&)) {
  return {.name = name, .since = 17, .attributes = "output_datatype:i periodic:i", .infer = infer};
}

}  // namespace

std::span<const Op> signal_constant_ops() {
  static const Op ops[] = {
      window("HannWindow", infer_hann),
      window("HammingWindow", infer_hamming),
      window("BlackmanWindow", infer_blackman),
      {.name = "MelWeightMatrix",
       .since = 17,
       .min_inputs = 5,
       .max_inputs = 5,
       .attributes = "output_datatype:i",
       .infer = infer_mel},
  };
  return ops;
}

}  // namespace hone::graph
