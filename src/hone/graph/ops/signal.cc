// Spectra: DFT as a product with the matrix of its waves, STFT as a convolution with them.
#include <cmath>
#include <numbers>

#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// The waves of a transform over `length`. An angle is reduced before it is computed, so there are
// as many as places.
class Waves {
 public:
  Waves(int64_t length, bool inverse) : length_(length) {
    waves_.reserve(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
      waves_.emplace_back(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
    }
  }
  // Returns cos and sin of the angle of place n in bin k.
  [[nodiscard]] std::pair<double, double> at(int64_t n, int64_t k) const {
    return waves_[static_cast<size_t>(n * k % length_)];
  }

 private:
  int64_t length_;
  std::vector<std::pair<double, double>> waves_;
};

Result<int64_t> scalar_integer(const InferContext& c, size_t i, const char* what) {
  HONE_ASSIGN_OR_RETURN(const auto values, c.integers(i, what));
  if (values.size() != 1) return c.fail("{} has {} elements", what, values.size());
  return values[0];
}

Status check_signal(const InferContext& c) {
  if (!is_float(c.dtype(0))) return c.fail("a signal of type {}", dtype_name(c.dtype(0)));
  if (c.rank(0) < 2 || (c.shape(0).back() != 1 && c.shape(0).back() != 2))
    return c.fail("a signal of shape {}, expected 1 or 2 numbers at the end",
                  to_string(c.shape(0)));
  return ok_status();
}

// A transform is a product with a matrix of this size squared, made in advance.
constexpr int64_t kMaxLength = 1 << 13;

struct Transform {
  int64_t axis = 0;
  // Extents of the transform, of the signal, of the result.
  int64_t length = 0, places = 0, bins = 0;
  bool inverse = false, complex_in = false, complex_out = true, mirrored = false;
};

// [places * parts, bins * parts]: with the complex numbers' parts as neighbours, a transform is one
// product. `mirrored`: the bins above the half are the conjugates of those below, which are given.
Result<Tensor> matrix_of(InferContext& c, const Transform& t, DType dtype) {
  const int64_t in = t.complex_in ? 2 : 1, out = t.complex_out ? 2 : 1;
  HONE_ASSIGN_OR_RETURN(Tensor matrix, c.new_constant(dtype, {t.places * in, t.bins * out}));
  const double scale = t.inverse ? 1.0 / static_cast<double>(t.length) : 1.0;
  const auto set = [&](int64_t row, int64_t column, double value) {
    matrix.set(row * t.bins * out + column, 0 + scale * value);  // no negative zero
  };
  const Waves waves(t.length, t.inverse);
  for (int64_t n = 0; n < t.places; ++n) {
    const bool twice = t.mirrored && n > 0 && 2 * n < t.length;
    for (int64_t k = 0; k < t.bins; ++k) {
      const auto [re, im] = waves.at(n, k);
      if (t.mirrored) {  // real results
        set(n * in, k, twice ? 2 * re : re);
        if (t.complex_in) set(n * in + 1, k, twice ? -2 * im : -im);
        continue;
      }
      set(n * in, k * 2, re);
      set(n * in, k * 2 + 1, im);
      if (!t.complex_in) continue;
      set(n * in + 1, k * 2, -im);
      set(n * in + 1, k * 2 + 1, re);
    }
  }
  return matrix;
}

// Reads the operands and attributes of a DFT.
Result<Transform> transform_of(const InferContext& c) {
  HONE_RETURN_IF_ERROR(check_signal(c));
  const Shape& x = c.shape(0);
  int64_t given = c.opset() < 20 ? c.attributes().integer("axis", 1) : -2;
  if (c.has(2)) {
    HONE_ASSIGN_OR_RETURN(given, scalar_integer(c, 2, "axis"));
  }
  const auto axis = normalize_axis(given, c.rank(0));
  if (!axis || *axis == c.rank(0) - 1)
    return c.fail("axis {} of a signal of shape {}", given, to_string(x));
  Transform t{.axis = *axis};
  t.inverse = c.attributes().integer("inverse", 0) != 0;
  const bool onesided = c.attributes().integer("onesided", 0) != 0;
  t.complex_in = x.back() == 2;
  t.mirrored = onesided && t.inverse;
  t.complex_out = !t.mirrored;
  const int64_t extent = x[static_cast<size_t>(t.axis)];
  t.length = t.mirrored ? 2 * (extent - 1) : extent;
  if (c.has(1)) {
    HONE_ASSIGN_OR_RETURN(t.length, scalar_integer(c, 1, "dft_length"));
  }
  if (t.length < 1 || t.length > kMaxLength)
    return c.unsupported("a transform over {} places", t.length);
  t.places = std::min(extent, t.mirrored ? t.length / 2 + 1 : t.length);
  t.bins = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  return t;
}

// hone.Spectrum: the type and shape of the result of a DFT, for who looks at nothing else.
Status infer_spectrum(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const Transform t, transform_of(c));
  Shape shape = c.shape(0);
  shape[static_cast<size_t>(t.axis)] = t.bins;
  shape.back() = t.complex_out ? 2 : 1;
  return c.set(0, c.dtype(0), std::move(shape));
}

Status expand_dft(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Transform t, transform_of(c));
  const Shape x = c.shape(0);
  const int64_t rank = c.rank(0), axis = t.axis, extent = x[static_cast<size_t>(axis)];
  ValueId value = t.places == extent ? c.input(0) : c.slice(c.input(0), axis, 0, t.places);
  // The axis goes last but one, is transformed together with the parts, and goes back.
  std::vector<int64_t> there, back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis && d != rank - 1) there.push_back(d);
  }
  there.push_back(axis);
  there.push_back(rank - 1);
  for (size_t d = 0; d < there.size(); ++d)
    back[static_cast<size_t>(there[d])] = static_cast<int64_t>(d);
  value = c.transpose(value, there);
  Shape shape = c.shape_of(value);
  Shape rows(shape.begin(), shape.end() - 2);
  rows.push_back(t.places * x.back());
  HONE_ASSIGN_OR_RETURN(Tensor matrix, matrix_of(c, t, c.dtype(0)));
  value = c.binary("MatMul", c.reshape(value, rows), c.constant(std::move(matrix)));
  shape[shape.size() - 2] = t.bins;
  shape.back() = t.complex_out ? 2 : 1;
  c.result(0, c.transpose(c.reshape(value, shape), back));
  return ok_status();
}

Status expand_stft(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_signal(c));
  const Shape& x = c.shape(0);
  if (x.size() != 3) return c.fail("a signal of shape {}", to_string(x));
  HONE_ASSIGN_OR_RETURN(const int64_t step, scalar_integer(c, 1, "frame_step"));
  int64_t length = x[1];
  if (c.has(2)) {
    if (c.rank(2) != 1 || c.dtype(2) != c.dtype(0))
      return c.fail("a window of type {} and shape {}", dtype_name(c.dtype(2)),
                    to_string(c.shape(2)));
    length = c.shape(2)[0];
  }
  if (c.has(3)) {
    HONE_ASSIGN_OR_RETURN(const int64_t declared, scalar_integer(c, 3, "frame_length"));
    if (c.has(2) && declared != length)
      return c.fail("frame_length {} and a window of {}", declared, length);
    length = declared;
  }
  if (step < 1 || length < 1 || length > x[1])
    return c.fail("frames of {} every {} of {} places", length, step, x[1]);
  if (length > kMaxLength) return c.unsupported("a transform over {} places", length);
  const bool complex_in = x[2] == 2;
  const bool onesided = c.attributes().integer("onesided", 1) != 0;
  if (onesided && complex_in) return c.fail("one side of a complex signal's spectrum");
  const int64_t bins = onesided ? length / 2 + 1 : length;
  // Weights of a convolution over time: [bins * 2, parts, length].
  HONE_ASSIGN_OR_RETURN(Tensor matrix, c.new_constant(c.dtype(0), {bins * 2, x[2], length}));
  const Waves waves(length, false);
  for (int64_t k = 0; k < bins; ++k) {
    for (int64_t n = 0; n < length; ++n) {
      const auto [re, im] = waves.at(n, k);
      const auto at = [&](int64_t part, int64_t from) {
        return ((k * 2 + part) * x[2] + from) * length + n;
      };
      matrix.set(at(0, 0), re);
      matrix.set(at(1, 0), im);
      if (!complex_in) continue;
      matrix.set(at(0, 1), -im);
      matrix.set(at(1, 1), re);
    }
  }
  ValueId weights = c.constant(std::move(matrix));
  if (c.has(2)) weights = c.binary("Mul", weights, c.input(2));
  const ValueId signal =
      complex_in ? c.transpose(c.input(0), {0, 2, 1}) : c.reshape(c.input(0), {x[0], 1, x[1]});
  const ValueId spectra =
      c.add("Conv", {signal, weights}, {{"strides", std::vector<int64_t>{step}}});
  const int64_t frames = (x[1] - length) / step + 1;
  c.result(0, c.reshape(c.transpose(spectra, {0, 2, 1}), {x[0], frames, bins, 2}));
  return ok_status();
}

}  // namespace

std::span<const Op> signal_ops() {
  static const Op ops[] = {
      {.name = "DFT",
       .since = 17,
       .until = 19,
       .max_inputs = 2,
       .attributes = "axis:i inverse:i onesided:i",
       .expand = expand_dft},
      {.name = "DFT",
       .since = 20,
       .max_inputs = 3,
       .attributes = "inverse:i onesided:i",
       .expand = expand_dft},
      {.name = "hone.Spectrum",
       .max_inputs = 3,
       .attributes = "axis:i inverse:i onesided:i",
       .infer = infer_spectrum},
      {.name = "STFT",
       .since = 17,
       .min_inputs = 2,
       .max_inputs = 4,
       .attributes = "onesided:i",
       .expand = expand_stft},
  };
  return ops;
}

}  // namespace hone::graph
