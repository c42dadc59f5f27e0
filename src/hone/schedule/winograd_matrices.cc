// The matrices of winograd.h.
#include <span>

#include "hone/schedule/winograd.h"

namespace hone::schedule {
namespace {

// Coefficients of the product of (x - point), lowest power first.
std::vector<double> polynomial(std::span<const double> points) {
  std::vector<double> p = {1};
  for (const double point : points) {
    std::vector<double> next(p.size() + 1, 0);
    for (size_t i = 0; i < p.size(); ++i) {
      next[i + 1] += p[i];
      next[i] -= point * p[i];
    }
    p = std::move(next);
  }
  return p;
}

// Returns an element of a row-major matrix.
template <typename Matrix>
auto& at(Matrix& matrix, int64_t row, int64_t column, int64_t columns) {
  return matrix[static_cast<size_t>(row * columns + column)];
}

// A single tap needs no transform.
WinogradMatrices one_tap(int64_t outputs) {
  WinogradMatrices m{outputs, 1, outputs, {}, {}, {}};
  m.weights.assign(static_cast<size_t>(outputs), 1);
  for (int64_t i = 0; i < outputs * outputs; ++i) m.data.push_back(i % (outputs + 1) == 0 ? 1 : 0);
  m.inverse = m.data;
  return m;
}

// Returns the matrices of stride 1.
WinogradMatrices phase_matrices(int64_t outputs, int64_t taps) {
  static constexpr double kPoints[] = {0, 1, -1, 2, -2, 0.5, -0.5};
  WinogradMatrices m{outputs, taps, outputs + taps - 1, {}, {}, {}};
  HONE_ASSERT(outputs > 0 && taps > 0 && m.points <= kMaxWinogradPoints, "too many points");
  const auto n = static_cast<size_t>(m.points);
  const std::vector<double> finite(std::begin(kPoints), std::begin(kPoints) + n - 1);
  for (size_t j = 0; j < n; ++j) {
    const bool infinite = j + 1 == n;
    std::vector<double> others = finite;
    if (!infinite) others.erase(others.begin() + static_cast<std::ptrdiff_t>(j));
    double scale = 1;  // factor of the Lagrange polynomial, which goes into the weights
    for (const double other : others) {
      if (!infinite) scale *= finite[j] - other;
    }
    std::vector<double> row = polynomial(others);
    row.resize(n, 0);
    m.data.insert(m.data.end(), row.begin(), row.end());
    double power = 1;
    for (int64_t k = 0; k < taps; ++k) {
      m.weights.push_back(infinite ? (k + 1 == taps ? 1.0 : 0.0) : power / scale);
      if (!infinite) power *= finite[j];
    }
  }
  for (int64_t i = 0; i < outputs; ++i) {
    for (size_t j = 0; j + 1 < n; ++j) {
      double power = 1;
      for (int64_t k = 0; k < i; ++k) power *= finite[j];
      m.inverse.push_back(power);
    }
    m.inverse.push_back(i + 1 == outputs ? 1 : 0);
  }
  return m;
}

}  // namespace

WinogradMatrices winograd_matrices(int64_t outputs, int64_t taps, int64_t stride) {
  HONE_ASSERT(stride > 0 && stride <= taps, "a phase without taps");
  WinogradMatrices m{outputs, taps, stride * (outputs - 1) + taps, {}, {}, {}};
  const auto zeros = [](int64_t rows, int64_t columns) {
    return std::vector<double>(static_cast<size_t>(rows * columns), 0);
  };
  m.data = zeros(m.points, m.points);
  m.weights = zeros(m.points, taps);
  m.inverse = zeros(outputs, m.points);
  int64_t first = 0;  // index of the phase's first point
  for (int64_t p = 0; p < stride; ++p) {
    const int64_t own = (taps - p + stride - 1) / stride;
    const WinogradMatrices phase = own == 1 ? one_tap(outputs) : phase_matrices(outputs, own);
    const auto from = phase.points;
    for (int64_t i = 0; i < from; ++i) {
      const int64_t row = first + i;
      for (int64_t j = 0; j < from; ++j)
        at(m.data, row, p + stride * j, m.points) = at(phase.data, i, j, from);
      for (int64_t k = 0; k < own; ++k)
        at(m.weights, row, p + stride * k, taps) = at(phase.weights, i, k, own);
      for (int64_t o = 0; o < outputs; ++o)
        at(m.inverse, o, row, m.points) = at(phase.inverse, o, i, from);
    }
    first += from;
  }
  return m;
}

}  // namespace hone::schedule
