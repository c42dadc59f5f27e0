// Weights of products are stored in a type of fewer bytes where that keeps their values: in the
// half type of the model, or integers of 8 or 16 bits, of which 32-bit ones are made by what
// subtracts the zero point of quantised weights. Kernels widen them where they read them.
#include <algorithm>
#include <array>

#include "hone/graph/op.h"
#include "hone/graph/passes/pass.h"
#include "hone/tensor/half_tensor.h"

namespace hone::graph {
namespace {

// Products read weights as they stand, among them those of an attention to constant keys and
// values; what looks rows up takes them from a table.
bool reads_halves(const Node& node, size_t operand) {
  if (node.type == "hone.Attention") return operand == 1 || operand == 2;
  return node.op->kind == Kind::kContraction || (node.type == "Gather" && operand == 0);
}

bool reads_integers(const Node& node, size_t operand) {
  constexpr std::array<std::string_view, 3> kProducts = {"Gemm", "MatMul", "hone.ConvInteger"};
  return operand == 1 && std::count(kProducts.begin(), kProducts.end(), node.type) > 0;
}

template <typename T>
Tensor in_type(DType type, const Tensor& integers) {
  Tensor result(type, integers.shape());
  const std::span<const int32_t> from = integers.as<int32_t>();
  std::transform(from.begin(), from.end(), result.as<T>().begin(),
                 [](int32_t value) { return static_cast<T>(value); });
  return result;
}

// Returns the same numbers in the smallest type that holds them; nullopt if none is smaller.
std::optional<Tensor> narrow_integers(const Tensor& integers) {
  const std::span<const int32_t> values = integers.as<int32_t>();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const auto fits = [&, low = *least, high = *most](int32_t from, int32_t to) {
    return low >= from && high <= to;
  };
  if (fits(INT8_MIN, INT8_MAX)) return in_type<int8_t>(DType::kI8, integers);
  if (fits(0, UINT8_MAX)) return in_type<uint8_t>(DType::kU8, integers);
  if (fits(INT16_MIN, INT16_MAX)) return in_type<int16_t>(DType::kI16, integers);
  return std::nullopt;
}

// The weights in fewer bytes, if their type, and that of the model's weights, has one.
std::optional<Tensor> narrow(const Tensor& weights, const HalfWeights& halves) {
  if (weights.dtype() == DType::kI32) return narrow_integers(weights);
  return narrowed(weights, halves.dtype, !halves.all);
}

}  // namespace

Status narrow_weights(Graph& graph, const PassOptions&, HalfWeights& weights) {
  const Uses uses(graph);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    Value& value = graph.values[i];
    const bool is_integer = value.dtype == DType::kI32;
    const bool is_float = value.dtype == DType::kF32 && weights.dtype != DType::kF32;
    if (!value.constant || (!is_integer && !is_float) || uses.output[i] ||
        value.constant->bytes() < kLeastNarrowBytes || uses.readers[i].empty())
      continue;
    bool all = true;
    for (const int reader : uses.readers[i]) {
      const Node& node = graph.nodes[static_cast<size_t>(reader)];
      const auto reads = is_integer ? reads_integers : reads_halves;
      for (size_t k = 0; k < node.inputs.size(); ++k)
        all &= node.inputs[k] != static_cast<ValueId>(i) || reads(node, k);
    }
    if (!all) continue;
    std::optional<Tensor> fewer = narrow(*value.constant, weights);
    if (!fewer) continue;
    value.dtype = fewer->dtype();
    value.constant = *std::move(fewer);
  }
  return ok_status();
}

}  // namespace hone::graph
