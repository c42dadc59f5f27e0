#include "hone/graph/ops/ml.h"

#include <numeric>

namespace hone::graph {

Result<ValueId> ml_rows(ExpandContext& c, bool keeps_double) {
  if (c.rank(0) != 1 && c.rank(0) != 2)
    return c.fail("data of shape {}, expected [features] or [rows, features]",
                  to_string(c.shape(0)));
  const DType type = keeps_double && c.dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32;
  const ValueId x = c.cast(c.input(0), type);
  HONE_RETURN_IF_ERROR(c.status());
  return c.rank(0) == 2 ? x : c.reshape(x, {1, c.shape(0)[0]});
}

namespace {

// Softmax to which scores of 0 add nothing; they stay what they are times exp(-max).
ValueId softmax_zero(ExpandContext& c, ValueId x) {
  const ValueId most = c.reduce("ReduceMax", x, {1});
  const ValueId counts = c.binary("Greater", c.add("Abs", {x}), 1e-7);
  const ValueId zero = c.scalar(c.dtype_of(x), 0);
  const ValueId power = c.add("Exp", {c.binary("Sub", x, most)});
  const ValueId sum = c.reduce("ReduceSum", c.add("Where", {counts, power, zero}), {1});
  const ValueId rest = c.binary("Mul", x, c.add("Exp", {c.add("Neg", {most})}));
  return c.binary("Div", c.add("Where", {counts, power, rest}), sum);
}

// The quantile of the normal distribution, by ONNX Runtime's approximation of erf's inverse
// (Winitzki).
ValueId probit(ExpandContext& c, ValueId x) {
  constexpr double kA = 0.147, kPi = 3.14159, kRoot2 = 1.41421356;
  const ValueId y = c.binary("Sub", c.binary("Mul", x, 2.0), 1.0);
  const ValueId one = c.scalar(c.dtype_of(x), 1);
  const ValueId log =
      c.add("Log", {c.binary("Mul", c.add("Sub", {one, y}), c.add("Add", {one, y}))});
  const ValueId v = c.binary("Add", c.binary("Mul", log, 0.5), 2 / (kPi * kA));
  const ValueId rest = c.binary("Sub", c.binary("Mul", v, v), c.binary("Mul", log, 1 / kA));
  const ValueId size = c.add("Sqrt", {c.binary("Sub", c.add("Sqrt", {rest}), v)});
  return c.binary("Mul", c.binary("Mul", c.add("Sign", {y}), size), kRoot2);
}

}  // namespace

Result<ValueId> ml_transformed(ExpandContext& c, ValueId scores, const std::string& transform) {
  if (transform.empty() || transform == "NONE") return scores;
  if (transform == "LOGISTIC") return c.add("Sigmoid", {scores});
  if (transform == "SOFTMAX") return c.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (transform == "SOFTMAX_ZERO") return softmax_zero(c, scores);
  if (transform == "PROBIT") return probit(c, scores);
  return c.unsupported(
      "post_transform '{}', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT", transform);
}

Result<ValueId> ml_transformed(ExpandContext& c, ValueId scores) {
  return ml_transformed(c, scores, c.attributes().text("post_transform", "NONE"));
}

Result<std::vector<int64_t>> ml_labels(const ExpandContext& c, const char* integers) {
  const auto texts = c.attributes().get<std::vector<std::string>>("classlabels_strings", {});
  if (texts.empty()) return c.attributes().integers(integers);
  if (c.wants(0)) {
    return c.unsupported(
        "labels that are texts, expected numbers: train on the classes' numbers, replace "
        "classlabels_strings by {} 0, 1, ... in the file, or leave the labels out of the outputs",
        integers);
  }
  std::vector<int64_t> places(texts.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

void ml_set_labels(ExpandContext& c, ValueId index, const std::vector<int64_t>& labels) {
  c.result(0, c.add("Gather", {c.integers(labels), index}, {{"axis", int64_t{0}}}));
}

Status ml_set_binary(ExpandContext& c, const BinaryScore& binary,
                     const std::vector<int64_t>& labels) {
  HONE_RETURN_IF_ERROR(c.status());
  const ValueId s = binary.score;
  const int64_t rows = c.shape_of(s)[0];
  const ValueId second = c.binary("Greater", s, binary.threshold);
  ml_set_labels(c, c.cast(c.reshape(second, {rows}), DType::kI64), labels);
  const std::string transform = c.attributes().text("post_transform", "NONE");
  if (transform == "PROBIT")
    return c.unsupported(
        "post_transform 'PROBIT' of one score that stands for two classes, expected NONE, "
        "LOGISTIC, SOFTMAX or SOFTMAX_ZERO");
  ValueId first = c.add("Neg", {s}), last = s;
  if (transform == "LOGISTIC") {
    first = c.add("Sigmoid", {first});
    last = c.add("Sigmoid", {s});
  } else if (binary.is_share) {
    first = c.add("Sub", {c.scalar(c.dtype_of(s), 1), s});
  }
  c.result(1, c.cast(c.add("Concat", {first, last}, {{"axis", int64_t{1}}}), DType::kF32));
  return ok_status();
}

Status ml_set_classes(ExpandContext& c, ValueId scores, const std::vector<int64_t>& labels) {
  HONE_RETURN_IF_ERROR(c.status());
  const Shape& shape = c.shape_of(scores);
  if (static_cast<int64_t>(labels.size()) != shape[1])
    return c.fail("{} labels for {} scores", labels.size(), shape[1]);
  const ValueId best = c.add("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  ml_set_labels(c, best, labels);
  HONE_ASSIGN_OR_RETURN(const ValueId z, ml_transformed(c, scores));
  c.result(1, c.cast(z, DType::kF32));
  return ok_status();
}

}  // namespace hone::graph
