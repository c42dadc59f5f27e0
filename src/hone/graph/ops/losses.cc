// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, as functions of simpler operators.
#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// The loss of log probabilities [N, C, d...] at the classes, operand 1, [N, d...].
Status add_loss(ExpandContext& c, ValueId log_prob) {
  const Shape shape = c.shape_of(log_prob);
  const ValueId labels = c.input(1);
  const DType dtype = c.dtype_of(log_prob), label_type = c.dtype_of(labels);
  const std::string reduction = c.attributes().text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return c.fail("reduction '{}', expected none, sum or mean", reduction);
  Shape wanted = shape;
  if (shape.size() >= 2) wanted.erase(wanted.begin() + 1);
  if (shape.size() < 2 || c.shape_of(labels) != wanted) {
    return c.fail("labels of shape {} for scores of shape {}", to_string(c.shape_of(labels)),
                  to_string(shape));
  }
  ValueId ignored = kNoValue;
  ValueId target = labels;
  if (c.attributes().has("ignore_index")) {
    const auto index = static_cast<double>(c.attributes().integer("ignore_index", 0));
    ignored = c.add("Equal", {labels, c.scalar(label_type, index)});
    target = c.add("Where", {ignored, c.scalar(label_type, 0), labels});
  }
  Shape column = shape;
  column[1] = 1;
  ValueId loss =
      c.add("GatherElements", {log_prob, c.reshape(target, column)}, {{"axis", int64_t{1}}});
  loss = c.add("Neg", {c.reshape(loss, wanted)});
  ValueId weight = kNoValue;
  if (c.has(2)) weight = c.add("Gather", {c.cast(c.input(2), dtype), target});
  if (ignored != kNoValue) {
    const ValueId one = c.scalar(dtype, 1), zero = c.scalar(dtype, 0);
    weight = c.add("Where", {ignored, zero, weight == kNoValue ? one : weight});
  }
  if (weight != kNoValue) loss = c.binary("Mul", loss, weight);
  if (reduction == "none") {
    c.result(0, c.cast(loss, c.dtype(0)));
    return ok_status();
  }
  const ValueId sum = c.add("ReduceSum", {loss}, {{"keepdims", int64_t{0}}});
  ValueId result = sum;
  if (reduction == "mean" && weight == kNoValue) {
    result = c.binary("Mul", sum, 1 / static_cast<double>(num_elements(wanted)));
  } else if (reduction == "mean") {
    result = c.binary("Div", sum, c.add("ReduceSum", {weight}, {{"keepdims", int64_t{0}}}));
  }
  c.result(0, c.cast(result, c.dtype(0)));
  return ok_status();
}

// The scores in the type in which all is computed.
Result<ValueId> scores(ExpandContext& c) {
  const bool fits = c.rank(0) >= 2 && (!c.has(2) || c.shape(2) == Shape{c.shape(0)[1]});
  if (!is_float(c.dtype(0)) || !fits) {
    return c.fail("scores {} {}{}", dtype_name(c.dtype(0)), to_string(c.shape(0)),
                  c.has(2) ? " with weights " + to_string(c.shape(2)) : "");
  }
  return c.cast(c.input(0), compute_type(c.dtype(0)));
}

Status expand_nll(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId log_prob, scores(c));
  return add_loss(c, log_prob);
}

Status expand_cross_entropy(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId x, scores(c));
  const ValueId log_prob = c.add("LogSoftmax", {x}, {{"axis", int64_t{1}}});
  HONE_RETURN_IF_ERROR(add_loss(c, log_prob));
  c.result(1, c.cast(log_prob, c.dtype(0)));
  return ok_status();
}

}  // namespace

std::span<const Op> loss_ops() {
  static const Op ops[] = {
      {.name = "NegativeLogLikelihoodLoss",
       .since = 12,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = "ignore_index:i reduction:s",
       .expand = expand_nll},
      {.name = "SoftmaxCrossEntropyLoss",
       .since = 12,
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 2,
       .attributes = "ignore_index:i reduction:s",
       .expand = expand_cross_entropy},
  };
  return ops;
}

}  // namespace hone::graph
