// Random numbers: RandomNormal, RandomUniform, their forms Like, Bernoulli, Multinomial. The
// numbers are made when the model is imported, so each run of a model gets the same ones. They come
// from xoshiro256** (base/rng.h): seeded by the bits of the attribute `seed` as a float, or,
// without one, by the hash of the node's name; in the order of the elements.
#include <bit>

#include "hone/base/rng.h"
#include "hone/graph/emit.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

Rng generator(const ExpandContext& c) {
  if (!c.attributes().has("seed")) return Rng(hash_string(c.node().name));
  return Rng(std::bit_cast<uint32_t>(c.attributes().number("seed", 0)));
}

// Returns the type of the attribute `dtype`.
Result<DType> given_type(const ExpandContext& c, DType otherwise) {
  if (!c.attributes().has("dtype")) return otherwise;
  const int64_t code = c.attributes().integer("dtype", 0);
  if (code < 0 || code > UINT8_MAX) return c.fail("dtype is {}, expected an element type", code);
  const auto type = dtype_from_onnx(static_cast<int>(code));
  if (!type) return c.unsupported("element type {}", onnx_type_text(static_cast<int>(code)));
  return *type;
}

// Numbers uniform in [0, 1): as floats they may round to 1, which no number below 1 is less than.
Result<Tensor> uniform_numbers(ExpandContext& c, DType type, const Shape& shape) {
  HONE_ASSIGN_OR_RETURN(Tensor numbers, c.new_numbers(type, shape, 1));
  Rng rng = generator(c);
  constexpr double kBelowOne = 1 - 0x1p-24;
  for (int64_t i = 0; i < numbers.size(); ++i) numbers.set(i, std::min(rng.uniform(), kBelowOne));
  return numbers;
}

Result<Tensor> scaled_numbers(ExpandContext& c, DType type, const Shape& shape) {
  if (!is_float(type))
    return c.fail("random numbers of type {}, expected a type of floats", dtype_name(type));
  const bool normal = c.node().type.starts_with("RandomNormal");
  const double low = c.attributes().number(normal ? "mean" : "low", 0);
  const double width = normal ? static_cast<double>(c.attributes().number("scale", 1))
                              : static_cast<double>(c.attributes().number("high", 1)) - low;
  HONE_ASSIGN_OR_RETURN(Tensor numbers,
                        c.new_numbers(type, shape, normal ? kUniformsOfFunction : 1));
  Rng rng = generator(c);
  for (int64_t i = 0; i < numbers.size(); ++i)
    numbers.set(i, low + width * (normal ? rng.normal() : rng.uniform()));
  return numbers;
}

Status expand_random(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const DType type, given_type(c, DType::kF32));
  const Shape shape = c.attributes().integers("shape");
  if (!c.attributes().has("shape")) return c.fail("no attribute 'shape'");
  for (const int64_t extent : shape) {
    if (extent < 0) return c.fail("the shape {}, expected extents of at least 0", to_string(shape));
  }
  HONE_ASSIGN_OR_RETURN(Tensor numbers, scaled_numbers(c, type, shape));
  c.result(0, c.constant(std::move(numbers)));
  return ok_status();
}

Status expand_random_like(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const DType type, given_type(c, c.dtype(0)));
  HONE_ASSIGN_OR_RETURN(Tensor numbers, scaled_numbers(c, type, c.shape(0)));
  const ValueId y = c.constant(std::move(numbers)), extents = c.extents_of(c.input(0));
  c.result(0, extents == kNoValue ? y : with_extents(c, y, extents));
  return ok_status();
}

// 1 where a number is below the probability.
Status expand_bernoulli(ExpandContext& c) {
  if (!is_float(c.dtype(0)))
    return c.fail("probabilities of type {}, expected a type of floats", dtype_name(c.dtype(0)));
  HONE_ASSIGN_OR_RETURN(const DType type, given_type(c, c.dtype(0)));
  const DType wide = compute_type(c.dtype(0));
  HONE_ASSIGN_OR_RETURN(Tensor numbers, uniform_numbers(c, wide, c.shape(0)));
  const ValueId chance = c.cast(without_extents(c, c.input(0)), wide);
  const ValueId y = c.cast(c.binary("Less", c.constant(std::move(numbers)), chance), type);
  const ValueId extents = c.extents_of(c.input(0));
  c.result(0, extents == kNoValue ? y : with_extents(c, y, extents));
  return ok_status();
}

// A class is the number of classes whose probabilities, with those before, a number is not below.
Status expand_multinomial(ExpandContext& c) {
  if (c.rank(0) != 2 || !is_float(c.dtype(0)) || c.shape(0)[1] < 1)
    return c.fail("logarithms of probabilities {} {}, expected floats [batch, classes]",
                  dtype_name(c.dtype(0)), to_string(c.shape(0)));
  if (c.extents_of(c.input(0)) != kNoValue)
    return c.unsupported("probabilities whose shape depends on data");
  const int64_t samples = c.attributes().integer("sample_size", 1);
  HONE_ASSIGN_OR_RETURN(const DType type, given_type(c, DType::kI32));
  if (samples < 1 || (type != DType::kI32 && type != DType::kI64))
    return c.fail("sample_size {} of type {}, expected at least 1 of i32 or i64", samples,
                  dtype_name(type));
  const int64_t batch = c.shape(0)[0], classes = c.shape(0)[1];
  const DType wide = compute_type(c.dtype(0));
  HONE_ASSIGN_OR_RETURN(Tensor numbers, uniform_numbers(c, wide, {batch, samples, 1}));
  const ValueId chance = c.add("Softmax", {c.cast(c.input(0), wide)}, {{"axis", int64_t{1}}});
  const ValueId sums = c.add("CumSum", {chance, c.scalar(DType::kI64, 1)});
  const ValueId ends = c.reshape(c.slice(sums, 1, 0, classes - 1), {batch, 1, classes - 1});
  const ValueId beyond = c.binary("LessOrEqual", ends, c.constant(std::move(numbers)));
  c.result(0, c.reduce("ReduceSum", c.cast(beyond, type), {2}, false));
  return ok_status();
}

}  // namespace

std::span<const Op> random_ops() {
  static const Op ops[] = {
      expanded_op("RandomNormal", 1, {0, 0, 1}, "dtype:i mean:f scale:f seed:f shape:is",
                  expand_random),
      expanded_op("RandomUniform", 1, {0, 0, 1}, "dtype:i high:f low:f seed:f shape:is",
                  expand_random),
      expanded_op("RandomNormalLike", 1, {}, "dtype:i mean:f scale:f seed:f", expand_random_like),
      expanded_op("RandomUniformLike", 1, {}, "dtype:i high:f low:f seed:f", expand_random_like),
      expanded_op("Bernoulli", 15, {}, "dtype:i seed:f", expand_bernoulli),
      expanded_op("Multinomial", 7, {}, "dtype:i sample_size:i seed:f", expand_multinomial),
  };
  return ops;
}

}  // namespace hone::graph
