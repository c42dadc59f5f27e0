#include "hone/commands/check/output_difference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hone/commands/check/value_kinds.h"

namespace hone {
namespace {

// Below it a magnitude is noise: the pools of threads count denormal numbers as zero.
constexpr double kLeastMagnitude = 1e-30;
constexpr int64_t kMostColumns = 16;  // of a matrix whose rows are compared
constexpr int64_t kMostRows = 4096;   // each with each; of more, elements are compared

double largest_magnitude(const Tensor& tensor) {
  double largest = kLeastMagnitude;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double magnitude = std::abs(tensor.at(i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

// How far two elements are apart that may be `allowed` apart, in the units of that.
class Distance {
 public:
  Distance(const Tensor& expected, double tolerance)
      : real_(is_real(expected.dtype())),
        unit_(real_ ? largest_magnitude(expected) : 1),
        allowed_(allowed_difference(expected.dtype(), tolerance)) {}
  [[nodiscard]] double operator()(double a, double b) const {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    if (!std::isfinite(a) || !std::isfinite(b)) return HUGE_VAL;
    return std::abs(a - b) / unit_;
  }
  [[nodiscard]] bool near(double a, double b) const { return (*this)(a, b) <= allowed_; }
  [[nodiscard]] bool real() const { return real_; }

 private:
  bool real_;
  double unit_, allowed_;
};

// NaN last.
bool before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

double unmatched_elements(const Tensor& found, const Tensor& expected, const Distance& distance) {
  std::vector<double> a, b;
  for (int64_t i = 0; i < found.size(); ++i) a.push_back(found.at(i));
  for (int64_t i = 0; i < expected.size(); ++i) b.push_back(expected.at(i));
  std::sort(a.begin(), a.end(), before);
  std::sort(b.begin(), b.end(), before);
  size_t i = 0, j = 0, matched = 0;
  while (i < a.size() && j < b.size()) {
    if (distance.near(a[i], b[j])) {
      ++i, ++j, ++matched;
    } else {
      before(a[i], b[j]) ? ++i : ++j;
    }
  }
  const size_t most = std::max(a.size(), b.size());
  return most == 0 ? 0 : 1 - static_cast<double>(matched) / static_cast<double>(most);
}

double unmatched_rows(const Tensor& found, const Tensor& expected, int64_t columns,
                      const Distance& distance) {
  const int64_t rows = found.size() / columns, others = expected.size() / columns;
  std::vector<bool> taken(static_cast<size_t>(others));
  const auto near = [&](int64_t row, int64_t other) {
    for (int64_t c = 0; c < columns; ++c) {
      if (!distance.near(found.at(row * columns + c), expected.at(other * columns + c)))
        return false;
    }
    return true;
  };
  int64_t matched = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t other = 0; other < others; ++other) {
      if (taken[static_cast<size_t>(other)] || !near(row, other)) continue;
      taken[static_cast<size_t>(other)] = true;
      ++matched;
      break;
    }
  }
  const int64_t most = std::max(rows, others);
  return most == 0 ? 0 : 1 - static_cast<double>(matched) / static_cast<double>(most);
}

}  // namespace

Difference difference(const Tensor& found, const Tensor& expected, double tolerance) {
  Difference result;
  result.elements = std::max(found.size(), expected.size());
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
    result.same_shape = false;
    result.error = HUGE_VAL;
    result.share = 1;
    return result;
  }
  const Distance distance(expected, tolerance);
  int64_t wrong = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = found.at(i), b = expected.at(i);
    const bool near = distance.near(a, b);
    if (!near) ++wrong;
    if (distance.real() || !near) result.error = std::max(result.error, distance(a, b));
  }
  if (wrong > 0) result.share = static_cast<double>(wrong) / static_cast<double>(result.elements);
  return result;
}

double set_difference(const Tensor& found, const Tensor& expected, double tolerance) {
  if (found.dtype() != expected.dtype()) return 1;
  const Distance distance(expected, tolerance);
  const Shape &a = found.shape(), &b = expected.shape();
  const int64_t columns = b.size() > 1 ? b.back() : 1;
  const bool rows = b.size() > 1 && a.size() == b.size() && a.back() == columns && columns > 0 &&
                    columns <= kMostColumns &&
                    std::max(found.size(), expected.size()) / columns <= kMostRows;
  return rows ? unmatched_rows(found, expected, columns, distance)
              : unmatched_elements(found, expected, distance);
}

}  // namespace hone
