#include "hone/compute/class_family.h"

#include <algorithm>
#include <array>

namespace hone::compute {
namespace {

// Tags of stages that a contraction or reduction computes along with its result, or that are a
// pass over memory of their own.
constexpr std::array<std::string_view, 27> kPointwise = {
    "abs", "add",  "bias",       "cast",         "clip",       "copy", "div",   "elu",  "erf",
    "exp", "gelu", "hard_swish", "hard_sigmoid", "leaky_relu", "max",  "min",   "mul",  "neg",
    "pow", "relu", "scale",      "sigmoid",      "sqrt",       "sub",  "swish", "tanh", "where"};

}  // namespace

std::string class_family(std::string_view kernel_class) {
  std::string family;
  while (!kernel_class.empty()) {
    const size_t end = std::min(kernel_class.find('+'), kernel_class.size());
    std::string_view tag = kernel_class.substr(0, end);
    kernel_class.remove_prefix(std::min(end + 1, kernel_class.size()));
    if (std::find(kPointwise.begin(), kPointwise.end(), tag) != kPointwise.end()) continue;
    if (tag == "gemm") tag = "matmul";
    if (!family.empty()) family += '+';
    family += tag;
  }
  return family.empty() ? "pointwise" : family;
}

}  // namespace hone::compute
