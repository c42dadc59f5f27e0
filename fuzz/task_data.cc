#include "task_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/base/assert.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/known_zeros.h"

namespace hone::fuzz {
namespace {

double element(Data data, double scale, Rng& rng) {
  const double plain = rng.uniform() * 2 - 1;
  switch (data) {
    case Data::kPlain: return plain;
    case Data::kNan:
      if (rng.chance(0.01)) return std::numeric_limits<double>::quiet_NaN();
      return plain;
    case Data::kInfinite:
      if (rng.chance(0.01)) return rng.chance(0.5) ? HUGE_VAL : -HUGE_VAL;
      return plain;
    case Data::kIntegers:
    case Data::kDenormal: break;
  }
  return static_cast<double>(rng.between(-3, 3)) * scale;
}

}  // namespace

std::vector<Tensor> arguments(const RandomTask& task, const ir::Program& program, Data data,
                              uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const ir::Param& param : program.params) {
    if (const auto index = task.indices.find(args.size()); index != task.indices.end()) {
      args.push_back(index->second);
      continue;
    }
    Tensor tensor(param.buffer->dtype, param.buffer->shape);
    const bool given = param.role == ir::Role::kInput || param.role == ir::Role::kConstant;
    // Denormal data times weights that are integers have exact sums.
    const bool tiny = data == Data::kDenormal && param.role == ir::Role::kInput;
    const double scale = tiny ? std::ldexp(1.0, -static_cast<int>(rng.between(127, 149))) : 1;
    if (!given) std::memset(tensor.data(), 0xFF, static_cast<size_t>(tensor.bytes()));
    for (int64_t i = 0; given && i < tensor.size(); ++i) {
      const std::vector<float>& known = param.buffer->values;
      tensor.set(i, known.empty() ? element(data, scale, rng)
                                  : static_cast<double>(known[static_cast<size_t>(i)]));
    }
    ir::put_known_zeros(param, tensor);
    args.push_back(std::move(tensor));
  }
  return args;
}

Spread spread_of(const RandomTask& task, Data data, uint64_t seed,
                 const std::vector<Tensor>& expected) {
  constexpr int kRuns = 8;
  constexpr double kOff = 0x1p-21;  // 4 units of f32
  const ir::Program naive = compute::naive_program(task.dag);
  Rng rng(seed);
  std::vector<Tensor> exact = arguments(task, naive, data, seed);
  HONE_ASSERT(ir::run(naive, exact, {.float64 = true, .keep_outputs = true}).ok(),
              "as it ran before");
  Spread spread;
  for (const Tensor& want : expected) spread.emplace_back(static_cast<size_t>(want.size()), 0.0);
  const auto widen = [&](const std::vector<Tensor>& found) {
    for (size_t p = 0; p < spread.size(); ++p) {
      for (int64_t i = 0; i < expected[p].size(); ++i) {
        const double other = found[p].at(i), want = expected[p].at(i);
        const bool undecided = std::isnan(other) != std::isnan(want);  // a root of about zero
        double& most = spread[p][static_cast<size_t>(i)];
        most = undecided ? NAN : std::max(most, std::fabs(other - want));  // NAN stays
      }
    }
  };
  widen(exact);
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Tensor> args = arguments(task, naive, data, seed);
    for (size_t p = 0; p < args.size(); ++p) {
      const ir::Param& param = naive.params[p];
      const bool given = param.role == ir::Role::kInput || param.role == ir::Role::kConstant;
      if (!given || !is_float(args[p].dtype()) || !param.buffer->values.empty()) continue;
      for (int64_t i = 0; i < args[p].size(); ++i)
        args[p].set(i, args[p].at(i) * (rng.chance(0.5) ? 1 + kOff : 1 - kOff));
    }
    HONE_ASSERT(ir::run(naive, args, {.keep_outputs = true}).ok(), "as it ran before");
    widen(args);
  }
  return spread;
}

std::string difference(const ir::Program& program, const std::vector<Tensor>& want,
                       const std::vector<Tensor>& got, double tolerance, bool in_place,
                       const Spread& spread) {
  for (size_t p = 0; p < want.size(); ++p) {
    if (program.params[p].role != ir::Role::kOutput) continue;
    double largest = 0;
    for (int64_t i = 0; i < want[p].size(); ++i) {
      const double v = std::fabs(want[p].at(i));
      if (std::isfinite(v)) largest = std::max(largest, v);
    }
    const double allowed = tolerance * largest + 4 * std::ldexp(1.0, -149);
    for (int64_t i = 0; i < want[p].size(); ++i) {
      const double w = want[p].at(i), g = got[p].at(i);
      const double own = spread.empty() ? 0 : spread[p][static_cast<size_t>(i)];
      if (w == g || std::fabs(w - g) <= allowed + own || std::isnan(own)) continue;
      if (std::isnan(w) && std::isnan(g)) continue;
      // All bits set, as what no stage writes.
      if (in_place && (std::isnan(w) || (w == -1 && !is_float(want[p].dtype())))) continue;
      return fmt::format("{}[{}] is {}, expected {} (largest {})", program.params[p].buffer->name,
                         i, g, w, largest);
    }
  }
  return "";
}

}  // namespace hone::fuzz
