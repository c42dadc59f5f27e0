#include "hone/commands/check/rounding_noise.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string_view>
#include <variant>

#include "hone/base/rng.h"
#include "hone/graph/op.h"
#include "hone/tensor/small_types.h"

namespace hone {
namespace {

// Of a tensor's largest magnitude; of each product's result; of each other one. Each is several
// times what docs/user/tuning.md has as the largest error of the algorithm or type.
constexpr Rounding kAlgorithms = {.tolerance = 2e-4, .products = 2e-5, .others = 3e-7};
constexpr Rounding kNarrowWeights = {.tolerance = 2e-2, .products = 2e-3, .others = 3e-7};
constexpr Rounding kTf32 = {.tolerance = 1e-2, .products = 1e-3, .others = 3e-7};
constexpr Rounding kHalf = {.tolerance = 1e-2, .products = 5e-4, .others = 5e-4};
constexpr Rounding kBrainFloat = {.tolerance = 6e-2, .products = 4e-3, .others = 4e-3};
constexpr double kHuge = 1e30;                   // in float; in half nothing is
constexpr double kCount = 1 << 24;               // integers up to here are exact
constexpr float kLeastNormal = 1.17549435e-38F;  // pools count what is smaller as zero

void widen(Rounding& rounding, const Rounding& by) {
  rounding.tolerance = std::max(rounding.tolerance, by.tolerance);
  rounding.products = std::max(rounding.products, by.products);
  rounding.others = std::max(rounding.others, by.others);
}

// What moves or chooses elements, or cuts them off, rounds nothing.
bool is_exact(const graph::Node& node) {
  static const std::set<std::string_view> types = {"Abs",
                                                   "ArgMax",
                                                   "ArgMin",
                                                   "Cast",
                                                   "Ceil",
                                                   "Clip",
                                                   "Compress",
                                                   "Floor",
                                                   "Gather",
                                                   "GatherElements",
                                                   "GatherND",
                                                   "GlobalMaxPool",
                                                   "Max",
                                                   "MaxPool",
                                                   "MaxUnpool",
                                                   "Min",
                                                   "Neg",
                                                   "NonZero",
                                                   "OneHot",
                                                   "Pad",
                                                   "Range",
                                                   "ReduceMax",
                                                   "ReduceMin",
                                                   "Relu",
                                                   "Round",
                                                   "Scatter",
                                                   "ScatterElements",
                                                   "ScatterND",
                                                   "Sign",
                                                   "ThresholdedRelu",
                                                   "Tile",
                                                   "TopK",
                                                   "Trilu",
                                                   "Unique",
                                                   "Where",
                                                   "hone.Append",
                                                   "hone.Copy",
                                                   "hone.Hold",
                                                   "hone.Repeat",
                                                   "hone.SelectBoxes"};
  return types.contains(node.type);
}

// A number that no rounding made: masks, counts, positions; nor what stands for an infinity.
bool is_exact(double x) {
  return !std::isfinite(x) || std::abs(x) > kHuge || (x == std::floor(x) && std::abs(x) < kCount);
}

// Of sums, what is rounded is as large as their terms, not as they are.
bool sums(const graph::Node& node) {
  if (node.op->kind == graph::Kind::kContraction) return true;
  return node.op->kind == graph::Kind::kReduction && !is_exact(node);
}

double root_mean_square(std::span<const float> values) {
  double sum = 0;
  int64_t count = 0;
  for (const float x : values) {
    if (!std::isfinite(x) || std::abs(x) > kHuge) continue;
    sum += static_cast<double>(x) * x;
    ++count;
  }
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

// Uniform in [-1, 1).
double signed_unit(Rng& rng) {
  return static_cast<double>(static_cast<int64_t>(rng.next())) * 0x1.0p-63;
}

void change_floats(std::span<float> values, double relative, bool of_sums, Rng& rng) {
  const double base = of_sums ? root_mean_square(values) : 0;
  for (float& x : values) {
    if (is_exact(x)) continue;
    x += static_cast<float>(relative * (std::abs(x) + base) * signed_unit(rng));
    if (std::abs(x) < kLeastNormal) x = 0;
  }
}

void change_others(Tensor& tensor, double relative, Rng& rng) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.at(i);
    if (!is_exact(x)) tensor.set(i, x + relative * std::abs(x) * signed_unit(rng));
  }
}

}  // namespace

Rounding rounding_of(const graph::Graph& graph, std::span<const schedule::Steps> schedules) {
  Rounding rounding;
  for (const schedule::Steps& steps : schedules) {
    for (const schedule::Step& step : steps) {
      if (std::holds_alternative<schedule::Winograd>(step) ||
          std::holds_alternative<schedule::Strassen>(step))
        widen(rounding, kAlgorithms);
      if (std::holds_alternative<schedule::Narrow>(step)) widen(rounding, kNarrowWeights);
      const auto* matrix = std::get_if<schedule::Tensorize>(&step);
      if (matrix != nullptr && matrix->rounding == schedule::Rounding::kTf32)
        widen(rounding, kTf32);
    }
  }
  for (const graph::Node& node : graph.nodes) {
    for (const graph::ValueId out : node.outputs) {
      if (out == graph::kNoValue) continue;
      const DType dtype = graph.value(out).dtype;
      if (dtype == DType::kF16) widen(rounding, kHalf);
      if (dtype == DType::kBF16) widen(rounding, kBrainFloat);
      // A number near the middle between two of the type may become either.
      if (is_small(dtype)) rounding.tolerance = std::max(rounding.tolerance, small_step(dtype));
    }
  }
  return rounding;
}

ChangeResult rounding_noise(const Rounding& rounding, uint64_t seed) {
  const auto rng = std::make_shared<Rng>(seed);
  return [rounding, rng](const graph::Node& node, Tensor& tensor) {
    if (!is_float(tensor.dtype()) || is_exact(node)) return;
    const bool product = node.op->kind == graph::Kind::kContraction;
    double relative = product ? rounding.products : rounding.others;
    if (tensor.dtype() == DType::kF32) {
      if (sums(node)) relative = std::max(relative, Rounding().products);
      change_floats(tensor.as<float>(), relative, sums(node), *rng);
    } else {
      change_others(tensor, relative, *rng);
    }
  };
}

}  // namespace hone
