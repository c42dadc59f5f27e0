// graph/ops/ml.h - helpers of the operators of ai.onnx.ml: data as rows of floats, transforms of
// scores, labels and scores of classifiers.
#pragma once

#include <span>

#include "hone/graph/expand.h"

namespace hone::graph {

// The families of ai.onnx.ml.
[[nodiscard]] std::span<const Op> ml_column_ops();
[[nodiscard]] std::span<const Op> ml_linear_ops();
[[nodiscard]] std::span<const Op> ml_tree_ops();

// Returns operand 0 as rows [N, features] of f32, or of f64 where it is that and `keeps_double`.
[[nodiscard]] Result<ValueId> ml_rows(ExpandContext& c, bool keeps_double = false);
// Returns a list of the type.
template <typename T>
[[nodiscard]] Tensor ml_list(const std::vector<T>& values, DType type) {
  Tensor list(type, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i)
    list.set(static_cast<int64_t>(i), static_cast<double>(values[i]));
  return list;
}

// Applies `post_transform` (NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO, PROBIT) to scores [N, targets].
[[nodiscard]] Result<ValueId> ml_transformed(ExpandContext& c, ValueId scores,
                                             const std::string& transform);
// The same by the attribute of the context's node.
[[nodiscard]] Result<ValueId> ml_transformed(ExpandContext& c, ValueId scores);

// Returns the class labels, which are numbers; the error says what to do about texts. If nothing
// reads the labels (unread_labels.h), texts become 0, 1, ...
[[nodiscard]] Result<std::vector<int64_t>> ml_labels(const ExpandContext& c, const char* integers);
// Sets result 0 to the labels [N] of the rows of an index [N].
void ml_set_labels(ExpandContext& c, ValueId index, const std::vector<int64_t>& labels);

// One score s [N, 1] that stands for two classes, which are then as ONNX Runtime has them.
struct BinaryScore {
  ValueId score = kNoValue;
  double threshold = 0;   // the second class wins above it
  bool is_share = false;  // the classes' scores are 1 - s and s, else -s and s
};
// Sets labels and the scores [N, 2] of a classifier with one score.
[[nodiscard]] Status ml_set_binary(ExpandContext& c, const BinaryScore& binary,
                                   const std::vector<int64_t>& labels);
// Sets the label of the highest score and the transformed scores [N, classes].
[[nodiscard]] Status ml_set_classes(ExpandContext& c, ValueId scores,
                                    const std::vector<int64_t>& labels);

}  // namespace hone::graph
