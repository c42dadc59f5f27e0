#include "hone/backend/results_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hone/ir/interpreter.h"

namespace hone::backend::testing {

void fill_with_garbage(Tensor& t) {
  if (is_float(t.dtype())) {
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, std::numeric_limits<double>::quiet_NaN());
  } else {
    std::memset(t.data(), t.dtype() == DType::kBool ? 1 : 0x5A, static_cast<size_t>(t.bytes()));
  }
}

std::string difference(const ir::Program& program, std::span<const Tensor> expected,
                       std::span<const Tensor> found, double tolerance) {
  for (size_t p = 0; p < found.size(); ++p) {
    const ir::Param& param = program.params[p];
    if (param.role != ir::Role::kOutput && param.role != ir::Role::kPacked) continue;
    double largest = 1;
    for (int64_t i = 0; i < found[p].size(); ++i) {
      const double v = std::fabs(expected[p].at(i));
      if (std::isfinite(v)) largest = std::max(largest, v);
    }
    for (int64_t i = 0; i < found[p].size(); ++i) {
      const double want = expected[p].at(i);
      const double have = found[p].at(i);
      if (want == have || (std::isnan(want) && std::isnan(have))) continue;
      if (std::fabs(want - have) <= (is_float(found[p].dtype()) ? tolerance * largest : 0))
        continue;
      return fmt::format("{}[{}] is {}, expected {}", param.buffer->name, i, have, want);
    }
  }
  return "";
}

bool is_defined(const ir::Program& program, uint64_t seed) {
  std::vector<Tensor> args = ir::random_arguments(program, seed);
  if (!ir::run(program, args).ok()) return true;  // the comparison reports it
  for (const Tensor& t : args) {
    for (int64_t i = 0; is_float(t.dtype()) && i < t.size(); ++i) {
      if (std::isnan(t.at(i))) return false;
    }
  }
  return true;
}

}  // namespace hone::backend::testing
