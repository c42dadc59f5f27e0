// Numbers as integers with a scale and a zero point: QuantizeLinear, DequantizeLinear,
// DynamicQuantizeLinear. Functions of elementwise operators, which fuse into their producers.
#include "hone/graph/ops/quantize.h"

#include <limits>

#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/type_code.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {
namespace {

// Floats of 8 bits and fewer that have a sign, so not those that are only scales.
bool is_narrow_float(DType dtype) { return small_float(dtype) != nullptr; }

bool is_quantized(DType dtype) {
  if (is_small(dtype)) return dtype != kF8E8M0;
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16;
}

std::pair<double, double> range_of(DType dtype) {
  if (small_integer_bits(dtype) > 0) return small_integer_range(dtype);
  switch (dtype) {
    case DType::kI8: return {-128, 127};
    case DType::kU8: return {0, 255};
    case DType::kI16: return {-32768, 32767};
    default: return {0, 65535};
  }
}

// A type given as an attribute; `otherwise` if it is not given.
Result<DType> type_attribute(const InferContext& c, const char* name, DType otherwise) {
  const int64_t code = c.attributes().integer(name, 0);
  if (code == 0) return otherwise;
  const auto dtype = type_of_code(code);
  if (!dtype)
    return c.unsupported("{} is {}, a type that is not supported", name, type_code_text(code));
  return *dtype;
}

// A scale or zero point in a shape that broadcasts to the data's: one for all, one per index of the
// axis, or one per block of the axis.
Result<ValueId> spread(ExpandContext& c, ValueId parameter, const char* what) {
  const Shape& x = c.shape(0);
  const Shape given = c.shape_of(parameter);
  if (num_elements(given) == 1) return c.reshape(parameter, {});
  const auto axis = normalize_axis(c.attributes().integer("axis", 1), c.rank(0));
  if (!axis)
    return c.fail("axis {} of data of shape {}", c.attributes().integer("axis", 1), to_string(x));
  const auto a = static_cast<size_t>(*axis);
  if (given == Shape{x[a]}) {
    Shape shape(x.size(), 1);
    shape[a] = x[a];
    return c.reshape(parameter, shape);
  }
  Shape blocks = x;
  if (given.size() == x.size()) blocks[a] = given[a];
  const int64_t declared = c.attributes().integer("block_size", 0);
  if (given != blocks || given[a] < 1 || given[a] > x[a]) {
    return c.fail("{} of shape {} for data of shape {}, axis {}", what, to_string(given),
                  to_string(x), a);
  }
  const int64_t block = declared > 0 ? declared : (x[a] + given[a] - 1) / given[a];
  if (x[a] / block + (x[a] % block != 0 ? 1 : 0) != given[a]) {
    return c.fail("block_size {} for {} elements and {} blocks", block, x[a], given[a]);
  }
  Shape apart = given, repeated = given, joined = given;
  apart.insert(apart.begin() + *axis + 1, 1);
  repeated.insert(repeated.begin() + *axis + 1, block);
  joined[a] = given[a] * block;
  const ValueId wide = c.add("Expand", {c.reshape(parameter, apart), c.integers(repeated)});
  const ValueId whole = c.reshape(wide, joined);
  return joined[a] == x[a] ? whole : c.slice(whole, *axis, 0, x[a]);
}

Status expand_quantize(ExpandContext& c) {
  const DType given = c.has(2) ? c.dtype(2) : DType::kU8;
  HONE_ASSIGN_OR_RETURN(const DType type, type_attribute(c, "output_dtype", given));
  if (!is_quantized(type) || (c.has(2) && type != given))
    return c.unsupported("a result of type {} with a zero point of type {}", dtype_name(type),
                         dtype_name(given));
  const DType scale_type = is_float(c.dtype(1)) ? c.dtype(1) : DType::kF32;
  HONE_ASSIGN_OR_RETURN(const DType precision, type_attribute(c, "precision", scale_type));
  if (!is_float(precision)) return c.fail("precision is {}", dtype_name(precision));
  HONE_ASSIGN_OR_RETURN(const ValueId scale, spread(c, c.input(1), "scales"));
  ValueId zero = kNoValue;
  if (c.has(2)) {
    if (c.shape(2) != c.shape(1) && num_elements(c.shape(2)) != num_elements(c.shape(1)))
      return c.fail("zero points of shape {} and scales of shape {}", to_string(c.shape(2)),
                    to_string(c.shape(1)));
    HONE_ASSIGN_OR_RETURN(zero, spread(c, c.input(2), "zero points"));
  }
  const ValueId ratio = c.binary("Div", c.cast(c.input(0), precision), c.cast(scale, precision));
  if (!is_narrow_float(type)) {
    c.result(0, saturated(c, ratio, zero, type));
    return ok_status();
  }
  // A zero point of these only names the type; f4e2m1 adds it.
  const ValueId moved =
      zero == kNoValue || type != kF4E2M1 ? ratio : c.binary("Add", ratio, c.cast(zero, precision));
  c.result(0, c.add("Cast", {moved},
                    {{"to", static_cast<int64_t>(type)},
                     {"saturate", c.attributes().integer("saturate", 1)}}));
  return ok_status();
}

// A float has no zero point but 0.
Status check_float_zero(const ExpandContext& c) {
  const Tensor* zero = c.constant_of(c.input(2));
  for (int64_t i = 0; zero != nullptr && i < zero->size(); ++i) {
    if (zero->at(i) != 0)
      return c.fail("a zero point of {} for data of type {}, expected 0", zero->at(i),
                    dtype_name(c.dtype(0)));
  }
  return ok_status();
}

Status expand_dequantize(ExpandContext& c) {
  if (!is_quantized(c.dtype(0)) && c.dtype(0) != DType::kI32)
    return c.fail("data of type {}", dtype_name(c.dtype(0)));
  if (!is_float(c.dtype(1)) && c.dtype(1) != kF8E8M0)
    return c.fail("scales of type {}", dtype_name(c.dtype(1)));
  HONE_ASSIGN_OR_RETURN(const DType type, type_attribute(c, "output_dtype", c.dtype(1)));
  if (!is_float(type)) return c.fail("output_dtype is {}", dtype_name(type));
  HONE_ASSIGN_OR_RETURN(const ValueId scale, spread(c, c.input(1), "scales"));
  const bool narrow_float = is_narrow_float(c.dtype(0));
  ValueId x = c.cast(c.input(0), narrow_float ? DType::kF32 : DType::kI32);
  if (c.has(2) && narrow_float) HONE_RETURN_IF_ERROR(check_float_zero(c));
  if (c.has(2) && !narrow_float) {
    if (c.dtype(2) != c.dtype(0))
      return c.fail("zero points of type {} for data of type {}", dtype_name(c.dtype(2)),
                    dtype_name(c.dtype(0)));
    HONE_ASSIGN_OR_RETURN(const ValueId zero, spread(c, c.input(2), "zero points"));
    x = c.binary("Sub", x, c.cast(zero, DType::kI32));
  }
  c.result(0, c.cast(c.binary("Mul", c.cast(x, DType::kF32), c.cast(scale, DType::kF32)), type));
  return ok_status();
}

Status expand_dynamic_quantize(ExpandContext& c) {
  if (c.dtype(0) != DType::kF32) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < c.rank(0); ++d) axes.push_back(d);
  const ValueId x = c.input(0);
  const ValueId zero = c.scalar(DType::kF32, 0);
  const ValueId high = c.binary("Max", c.reduce("ReduceMax", x, axes, false), zero);
  const ValueId low = c.binary("Min", c.reduce("ReduceMin", x, axes, false), zero);
  const ValueId span = c.binary("Div", c.binary("Sub", high, low), 255.0);
  // Data that is all zero has no scale of its own.
  const ValueId flat = c.binary("Equal", span, 0.0);
  const ValueId scale = c.add("Where", {flat, c.scalar(DType::kF32, 1), span});
  const ValueId start = c.binary("Div", c.binary("Sub", zero, low), scale);
  const ValueId point = saturated(c, start, kNoValue, DType::kU8);
  c.result(0, saturated(c, c.binary("Div", x, scale), point, DType::kU8));
  c.result(1, scale);
  c.result(2, point);
  return ok_status();
}

}  // namespace

ValueId saturated(ExpandContext& c, ValueId x, ValueId zero, DType type) {
  const auto [low, high] = range_of(type);
  ValueId whole = c.cast(c.add("Round", {x}), DType::kF32);
  if (zero != kNoValue) whole = c.binary("Add", whole, c.cast(zero, DType::kF32));
  const ValueId clipped =
      c.add("Clip", {whole, c.scalar(DType::kF32, low), c.scalar(DType::kF32, high)});
  return c.cast(clipped, type);
}

std::span<const Op> quantize_ops() {
  const auto op = [](const char* name, int since, int until, std::string_view attributes,
                     Status (*expand)(ExpandContext&)) {
    return Op{.name = name,
              .since = since,
              .until = until,
              .min_inputs = 2,
              .max_inputs = 3,
              .attributes = attributes,
              .expand = expand};
  };
  static const Op ops[] = {
      op("QuantizeLinear", 10, 12, "", expand_quantize),
      op("QuantizeLinear", 13, 18, "axis:i", expand_quantize),
      op("QuantizeLinear", 19, 20, "axis:i saturate:i", expand_quantize),
      op("QuantizeLinear", 21, 22, "axis:i block_size:i output_dtype:i saturate:i",
         expand_quantize),
      op("QuantizeLinear", 23, kMaxOpset,
         "axis:i block_size:i output_dtype:i precision:i saturate:i", expand_quantize),
      op("DequantizeLinear", 10, 12, "", expand_dequantize),
      op("DequantizeLinear", 13, 20, "axis:i", expand_dequantize),
      op("DequantizeLinear", 21, 22, "axis:i block_size:i", expand_dequantize),
      op("DequantizeLinear", 23, kMaxOpset, "axis:i block_size:i output_dtype:i",
         expand_dequantize),
      expanded_op("com.microsoft.QuantizeLinear", 1, {2, 3, 1}, "axis:i", expand_quantize),
      expanded_op("com.microsoft.DequantizeLinear", 1, {2, 3, 1}, "axis:i", expand_dequantize),
      {.name = "DynamicQuantizeLinear",
       .since = 11,
       .max_outputs = 3,
       .expand = expand_dynamic_quantize},
  };
  return ops;
}

}  // namespace hone::graph
