// DynamicQuantizeLSTM: an LSTM whose weights are bytes and whose data and states are quantised to
// bytes for each product (ONNX Runtime, ContribOperators.md).
#include <map>

#include "hone/graph/ops/recurrent.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

constexpr size_t kInputScale = 8, kRecurrenceScale = 10;  // each is followed by its zero point

Status expand_dynamic_quantize_lstm(ExpandContext& c) {
  for (size_t i = kInputScale; i < kInputScale + 4; ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
  }
  for (const size_t i : {1, 2}) {
    const size_t scale = i == 1 ? kInputScale : kRecurrenceScale;
    if (c.dtype(i) != DType::kI8 && c.dtype(i) != DType::kU8)
      return c.fail("weights of type {}, expected i8 or u8", dtype_name(c.dtype(i)));
    if (c.dtype(scale + 1) != c.dtype(i) || c.dtype(scale) != DType::kF32)
      return c.fail("scales of type {} and zero points of type {} for weights of type {}",
                    dtype_name(c.dtype(scale)), dtype_name(c.dtype(scale + 1)),
                    dtype_name(c.dtype(i)));
    if (c.rank(i) != 3) return c.fail("weights of shape {}", to_string(c.shape(i)));
    const Shape one = {c.shape(i)[0]}, each = {c.shape(i)[0], c.shape(i)[2]};
    for (const size_t k : {scale, scale + 1}) {
      if (c.shape(k) != one && c.shape(k) != each)
        return c.fail("operand {} of shape {}, expected {} or {}", k, to_string(c.shape(k)),
                      to_string(one), to_string(each));
    }
  }
  Recurrent r = make_lstm(c);
  // The weights less their zero points, and the scales, by operand and direction: all steps share
  // them.
  struct Weights {
    ValueId integers, scale;
  };
  std::map<std::pair<size_t, int64_t>, Weights> weights;
  const auto less_zero = [&](ValueId bytes, ValueId zero) {
    return c.binary("Sub", c.cast(bytes, DType::kI32), c.cast(zero, DType::kI32));
  };
  const auto weights_of = [&](size_t operand, int64_t direction) {
    const auto at = weights.find({operand, direction});
    if (at != weights.end()) return at->second;
    const size_t scale = operand == 1 ? kInputScale : kRecurrenceScale;
    const Weights made = {
        less_zero(r.of_direction(operand, direction), r.of_direction(scale + 1, direction)),
        r.of_direction(scale, direction)};
    return weights[{operand, direction}] = made;
  };
  r.multiply_by([&](ValueId x, size_t operand, int64_t direction) {
    const Weights by = weights_of(operand, direction);
    const auto bytes = c.add_all("DynamicQuantizeLinear", {x}, 3);
    const ValueId sum = c.binary("MatMul", less_zero(bytes[0], bytes[2]), by.integers);
    return c.binary("Mul", c.cast(sum, DType::kF32), c.binary("Mul", bytes[1], by.scale));
  });
  return expand_lstm(c, r);
}

}  // namespace

std::span<const Op> microsoft_lstm_ops() {
  constexpr std::string_view kAttributes =
      "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
      "input_forget:i";
  static const Op ops[] = {
      expanded_op("com.microsoft.DynamicQuantizeLSTM", 1, {3, 12, 3}, kAttributes,
                  expand_dynamic_quantize_lstm),
      expanded_op("hone.DynamicQuantizeLSTM", 1, {3, static_cast<int>(kStepsOfRun) + 1, 3},
                  kAttributes, expand_dynamic_quantize_lstm),
  };
  return ops;
}

}  // namespace hone::graph
