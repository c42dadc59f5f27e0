// Operators of ai.onnx.ml on columns of numbers: Scaler, Normalizer, Imputer, Binarizer,
// ArrayFeatureExtractor, FeatureVectorizer, OneHotEncoder, LabelEncoder.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hone/graph/ops/ml.h"

namespace hone::graph {
namespace {

// A list of one value for all columns, or of one per column.
Status check_columns(const ExpandContext& c, const char* name, size_t size) {
  if (c.rank(0) >= 1 && (size == 1 || static_cast<int64_t>(size) == c.shape(0).back()))
    return ok_status();
  return c.fail("{} values in {} for data of shape {}", size, name, to_string(c.shape(0)));
}

// (x - offset) * scale
Status expand_scaler(ExpandContext& c) {
  const auto offset = c.attributes().get<std::vector<float>>("offset", {0});
  const auto scale = c.attributes().get<std::vector<float>>("scale", {1});
  HONE_RETURN_IF_ERROR(check_columns(c, "offset", offset.size()));
  HONE_RETURN_IF_ERROR(check_columns(c, "scale", scale.size()));
  const ValueId x = c.cast(c.input(0), DType::kF32);
  const ValueId shifted = c.binary("Sub", x, given_constant(c, ml_list(offset, DType::kF32)));
  c.result(0, c.binary("Mul", shifted, given_constant(c, ml_list(scale, DType::kF32))));
  return ok_status();
}

// Rows by their maximum, sum of magnitudes or Euclidean length; rows where that is 0 stay.
Status expand_normalizer(ExpandContext& c) {
  const std::string norm = c.attributes().text("norm", "MAX");
  HONE_ASSIGN_OR_RETURN(const ValueId x, ml_rows(c));
  const char* type = norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2";
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return c.fail("norm is '{}', expected MAX, L1 or L2", norm);
  const ValueId length = c.reduce(type, x, {1});
  const ValueId none = c.binary("Equal", length, 0.0);
  const ValueId y = c.add("Where", {none, x, c.binary("Div", x, length)});
  c.result(0, c.reshape(y, c.shape(0)));
  return ok_status();
}

// Columns whose values are `replaced` (or NaN) get a value of their own.
Status expand_imputer(ExpandContext& c) {
  const DType type = c.dtype(0);
  const bool floats = is_float(type);
  Tensor imputed;
  double replaced = 0;
  if (floats) {
    imputed = ml_list(c.attributes().get<std::vector<float>>("imputed_value_floats", {}), type);
    replaced = static_cast<double>(c.attributes().number("replaced_value_float", 0));
  } else {
    imputed = ml_list(c.attributes().integers("imputed_value_int64s"), type);
    replaced = static_cast<double>(c.attributes().integer("replaced_value_int64", 0));
  }
  if (imputed.size() == 0)
    return c.fail("no {} for data of type {}",
                  floats ? "imputed_value_floats" : "imputed_value_int64s", dtype_name(type));
  HONE_RETURN_IF_ERROR(check_columns(c, "the imputed values", static_cast<size_t>(imputed.size())));
  const ValueId missing =
      std::isnan(replaced) ? c.add("IsNaN", {c.input(0)}) : c.binary("Equal", c.input(0), replaced);
  c.result(0, c.add("Where", {missing, given_constant(c, std::move(imputed)), c.input(0)}));
  return ok_status();
}

// 1 above the threshold, else 0.
Status expand_binarizer(ExpandContext& c) {
  const double threshold = static_cast<double>(c.attributes().number("threshold", 0));
  c.result(0, c.cast(c.binary("Greater", c.input(0), threshold), c.dtype(0)));
  return ok_status();
}

// The columns that operand 1 names.
Status expand_extractor(ExpandContext& c) {
  if (c.rank(0) < 1 || num_elements(c.shape(1)) < 1)
    return c.fail("data of shape {} and columns of shape {}", to_string(c.shape(0)),
                  to_string(c.shape(1)));
  const int64_t count = num_elements(c.shape(1));
  const ValueId columns = c.reshape(c.input(1), {count});
  const ValueId y = c.add("Gather", {c.input(0), columns}, {{"axis", c.rank(0) - 1}});
  c.result(0, c.rank(0) == 1 ? c.reshape(y, {1, count}) : y);
  return ok_status();
}

// The columns of all operands side by side, of each as many as the attribute says: zeros follow
// where it has fewer.
Status expand_vectorizer(ExpandContext& c) {
  constexpr int64_t kMostColumns = 1 << 24;
  const std::vector<int64_t> widths = c.attributes().integers("inputdimensions");
  if (widths.size() != c.num_inputs())
    return c.fail("{} inputdimensions for {} operands", widths.size(), c.num_inputs());
  std::vector<ValueId> parts;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (!c.has(i) || c.rank(i) < 1)
      return c.fail("operand {} is a scalar or missing, expected rows of numbers", i);
    const Shape& shape = c.shape(i);
    const int64_t rows = c.rank(i) == 1 ? 1 : shape[0];
    const int64_t given = rows == 0 ? 0 : num_elements(shape) / rows, width = widths[i];
    if (width < 0 || width > kMostColumns)
      return c.fail("inputdimensions {}, expected numbers of columns", to_string(widths));
    ValueId x = c.cast(c.reshape(c.input(i), {rows, given}), DType::kF32);
    if (width < given) x = c.slice(x, 1, 0, width);
    if (width > given)
      x = c.add("Pad", {x, c.integers({0, 0, 0, width - given}), c.scalar(DType::kF32, 0)});
    parts.push_back(x);
  }
  c.result(0, c.add("Concat", parts, {{"axis", int64_t{1}}}));
  return ok_status();
}

// A new last dimension that is 1 where an element is the category, else 0; numbers with fractions
// are cut to integers first.
Status expand_one_hot(ExpandContext& c) {
  if (c.attributes().has("cats_strings") &&
      !c.attributes().get<std::vector<std::string>>("cats_strings", {}).empty())
    return c.unsupported(
        "categories that are texts: encode texts before the model, and let it begin with their "
        "numbers");
  const std::vector<int64_t> categories = c.attributes().integers("cats_int64s");
  if (categories.empty()) return c.fail("no cats_int64s");
  std::vector<int64_t> sorted = categories;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return c.fail("the category {} is there twice", *twice);
  const ValueId whole = c.cast(c.input(0), DType::kI64);
  const ValueId x = c.add("Unsqueeze", {whole, c.integers({c.rank(0)})});
  c.result(0, c.cast(c.binary("Equal", x, c.integers(categories)), DType::kF32));
  return ok_status();
}

struct Codes {
  Tensor keys, values, otherwise;
};

// Keys or values, from whichever of the attributes is given.
Result<Tensor> codes(const ExpandContext& c, const std::string& what) {
  const Attributes& a = c.attributes();
  if (const auto* tensor = a.find<Tensor>(what + "_tensor")) {
    Tensor flat(tensor->dtype(), {tensor->size()});
    std::memcpy(flat.data(), tensor->data(), static_cast<size_t>(tensor->bytes()));
    return flat;
  }
  if (const auto* floats = a.find<std::vector<float>>(what + "_floats")) {
    Tensor list(DType::kF32, {static_cast<int64_t>(floats->size())});
    std::copy(floats->begin(), floats->end(), list.as<float>().begin());
    return list;
  }
  if (const auto* integers = a.find<std::vector<int64_t>>(what + "_int64s")) {
    Tensor list(DType::kI64, {static_cast<int64_t>(integers->size())});
    std::copy(integers->begin(), integers->end(), list.as<int64_t>().begin());
    return list;
  }
  return c.unsupported(
      "{} that are no numbers: encode texts before the model, and let it begin with their numbers",
      what);
}

Result<Codes> read_codes(const ExpandContext& c) {
  Codes found;
  HONE_ASSIGN_OR_RETURN(found.keys, codes(c, "keys"));
  HONE_ASSIGN_OR_RETURN(found.values, codes(c, "values"));
  if (found.keys.size() != found.values.size() || found.keys.size() == 0)
    return c.fail("{} keys and {} values", found.keys.size(), found.values.size());
  found.otherwise = Tensor(found.values.dtype(), {});
  const Attributes& a = c.attributes();
  if (const auto* tensor = a.find<Tensor>("default_tensor");
      tensor != nullptr && tensor->size() == 1)
    found.otherwise.set(0, tensor->at(0));
  else if (is_float(found.values.dtype()))
    found.otherwise.set(0, static_cast<double>(a.number("default_float", -0.0F)));
  else
    found.otherwise.set(0, static_cast<double>(a.integer("default_int64", -1)));
  return found;
}

// The value whose key an element is; each is compared with all keys.
Status expand_label_encoder(ExpandContext& c) {
  constexpr int64_t kMostKeys = 10'000;
  HONE_ASSIGN_OR_RETURN(Codes found, read_codes(c));
  if (found.keys.size() > kMostKeys)
    return c.unsupported("{} keys, at most {} are supported", found.keys.size(), kMostKeys);
  if (found.keys.dtype() != c.dtype(0))
    return c.fail("keys of type {} for data of type {}", dtype_name(found.keys.dtype()),
                  dtype_name(c.dtype(0)));
  const int64_t rank = c.rank(0);
  Tensor nan_keys(DType::kBool, found.keys.shape());
  bool any_nan = false;
  for (int64_t i = 0; i < found.keys.size(); ++i) {
    const bool is_nan = is_float(found.keys.dtype()) && std::isnan(found.keys.at(i));
    nan_keys.set(i, is_nan ? 1 : 0);
    any_nan |= is_nan;
  }
  const ValueId x = c.add("Unsqueeze", {c.input(0), c.integers({rank})});
  ValueId equal = c.binary("Equal", x, given_constant(c, std::move(found.keys)));
  if (any_nan) {
    const ValueId both =
        c.binary("And", c.add("IsNaN", {x}), given_constant(c, std::move(nan_keys)));
    equal = c.binary("Or", equal, both);
  }
  const ValueId hits = c.cast(equal, DType::kI32);
  const ValueId place = c.add("ArgMax", {hits}, {{"axis", rank}, {"keepdims", int64_t{0}}});
  const ValueId known = c.cast(c.reduce("ReduceMax", hits, {rank}, false), DType::kBool);
  const ValueId value =
      c.add("Gather", {given_constant(c, std::move(found.values)), place}, {{"axis", int64_t{0}}});
  c.result(0, c.add("Where", {known, value, given_constant(c, std::move(found.otherwise))}));
  return ok_status();
}

}  // namespace

std::span<const Op> ml_column_ops() {
  static const Op ops[] = {
      expanded_op("ai.onnx.ml.Scaler", 1, {1, 1}, "offset:fs scale:fs", expand_scaler),
      expanded_op("ai.onnx.ml.Normalizer", 1, {1, 1}, "norm:s", expand_normalizer),
      expanded_op("ai.onnx.ml.Imputer", 1, {1, 1},
                  "imputed_value_floats:fs imputed_value_int64s:is replaced_value_float:f "
                  "replaced_value_int64:i",
                  expand_imputer),
      expanded_op("ai.onnx.ml.Binarizer", 1, {1, 1}, "threshold:f", expand_binarizer),
      expanded_op("ai.onnx.ml.ArrayFeatureExtractor", 1, {2, 2}, "", expand_extractor),
      expanded_op("ai.onnx.ml.FeatureVectorizer", 1, {1, 1 << 16}, "inputdimensions:is",
                  expand_vectorizer),
      expanded_op("ai.onnx.ml.OneHotEncoder", 1, {1, 1}, "cats_int64s:is cats_strings:ss zeros:i",
                  expand_one_hot),
      expanded_op(
          "ai.onnx.ml.LabelEncoder", 1, {1, 1},
          "classes_strings:ss default_float:f default_int64:i default_string:s default_tensor:t "
          "keys_floats:fs keys_int64s:is keys_strings:ss keys_tensor:t values_floats:fs "
          "values_int64s:is values_strings:ss values_tensor:t",
          expand_label_encoder),
  };
  return ops;
}

}  // namespace hone::graph
