#include "hone/learn/normalisation.h"

#include <algorithm>
#include <cmath>

#include "hone/cost/net/padding.h"

namespace hone::learn {
namespace {

namespace net = cost::net;

// The moments of each of `width` numbers.
struct Moments {
  std::vector<double> mean, deviation;
};

Moments moments(const std::vector<float>& values, const std::vector<float>* mask, size_t width) {
  Moments result{std::vector<double>(width), std::vector<double>(width)};
  const size_t rows = values.size() / width;
  const auto for_each = [&](const auto& f) {
    for (size_t row = 0; row < rows; ++row) {
      if (mask != nullptr && (*mask)[row] == 0) continue;
      for (size_t i = 0; i < width; ++i) f(i, values[row * width + i]);
    }
  };
  std::vector<double> count(width);
  for_each([&](size_t i, double value) { result.mean[i] += value, ++count[i]; });
  for (size_t i = 0; i < width; ++i) result.mean[i] /= std::max(count[i], 1.0);
  for_each([&](size_t i, double value) {
    result.deviation[i] += (value - result.mean[i]) * (value - result.mean[i]);
  });
  for (size_t i = 0; i < width; ++i)
    result.deviation[i] = std::sqrt(result.deviation[i] / std::max(count[i], 1.0));
  return result;
}

}  // namespace

void set_normalisation(net::Net& model, const net::NetBatch& rows) {
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const std::string& name = model.inputs[i].name;
    net::Constant* mean = model.find_constant(name + ".mean");
    net::Constant* scale = model.find_constant(name + ".scale");
    if (mean == nullptr || scale == nullptr) continue;
    const int mask = net::mask_place(model, i);  // -1: nothing is padding
    const Moments found =
        moments(rows.inputs[i], mask < 0 ? nullptr : &rows.inputs[static_cast<size_t>(mask)],
                mean->values.size());
    for (size_t k = 0; k < mean->values.size(); ++k) {
      const bool varies = found.deviation[k] > 1e-4 * (1 + std::abs(found.mean[k]));
      mean->values[k] = static_cast<float>(found.mean[k]);
      scale->values[k] = varies ? static_cast<float>(1 / found.deviation[k]) : 0.0F;
    }
  }
}

}  // namespace hone::learn
