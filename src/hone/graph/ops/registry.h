// graph/ops/registry.h - all operator definitions, by family.
#pragma once

#include <span>

#include "hone/graph/op.h"

namespace hone::graph {

// Returns the definition of an operator, or null: one of the default domain in an opset, or one of
// another domain by a name such as "com.microsoft.Gelu", whose versions the importer does not tell
// apart.
[[nodiscard]] const Op* find_op(std::string_view name, int opset);
// Returns every definition, in the order of the families; `hone ops` prints them.
[[nodiscard]] const std::vector<const Op*>& all_ops();

// Each family returns a table with static storage.
[[nodiscard]] std::span<const Op> activation_ops();
[[nodiscard]] std::span<const Op> arg_extreme_ops();
[[nodiscard]] std::span<const Op> cast_ops();
[[nodiscard]] std::span<const Op> control_flow_ops();
[[nodiscard]] std::span<const Op> convolution_ops();
[[nodiscard]] std::span<const Op> layer_norm_ops();
[[nodiscard]] std::span<const Op> logic_ops();
[[nodiscard]] std::span<const Op> loss_ops();
[[nodiscard]] std::span<const Op> lp_pool_ops();
[[nodiscard]] std::span<const Op> math_ops();
[[nodiscard]] std::span<const Op> deform_conv_ops();
[[nodiscard]] std::span<const Op> determinant_ops();
[[nodiscard]] std::span<const Op> elementwise_ops();
[[nodiscard]] std::span<const Op> flex_attention_ops();
[[nodiscard]] std::span<const Op> fused_attention_ops();
[[nodiscard]] std::span<const Op> gather_ops();
[[nodiscard]] std::span<const Op> generate_ops();
[[nodiscard]] std::span<const Op> grid_sample_ops();
[[nodiscard]] std::span<const Op> interleave_ops();
[[nodiscard]] std::span<const Op> internal_ops();
[[nodiscard]] std::span<const Op> matrix_ops();
[[nodiscard]] std::span<const Op> rnn_ops();
[[nodiscard]] std::span<const Op> linear_attention_ops();
[[nodiscard]] std::span<const Op> rotary_embedding_ops();
[[nodiscard]] std::span<const Op> attention_ops();
[[nodiscard]] std::span<const Op> signal_constant_ops();
[[nodiscard]] std::span<const Op> signal_ops();
[[nodiscard]] std::span<const Op> einsum_ops();
[[nodiscard]] std::span<const Op> conv_transpose_ops();
[[nodiscard]] std::span<const Op> integer_product_ops();
[[nodiscard]] std::span<const Op> quantize_ops();
[[nodiscard]] std::span<const Op> non_max_suppression_ops();
[[nodiscard]] std::span<const Op> microsoft_attention_ops();
[[nodiscard]] std::span<const Op> microsoft_fused_ops();
[[nodiscard]] std::span<const Op> microsoft_lstm_ops();
[[nodiscard]] std::span<const Op> microsoft_norm_ops();
[[nodiscard]] std::span<const Op> movement_ops();
[[nodiscard]] std::span<const Op> normalization_ops();
[[nodiscard]] std::span<const Op> pad_ops();
[[nodiscard]] std::span<const Op> pooling_ops();
[[nodiscard]] std::span<const Op> random_ops();
[[nodiscard]] std::span<const Op> rearrange_ops();
[[nodiscard]] std::span<const Op> split_ops();
[[nodiscard]] std::span<const Op> reduction_ops();
[[nodiscard]] std::span<const Op> resample_ops();
[[nodiscard]] std::span<const Op> resample_plane_ops();
[[nodiscard]] std::span<const Op> resize_ops();
[[nodiscard]] std::span<const Op> roi_align_ops();
[[nodiscard]] std::span<const Op> scatter_ops();
[[nodiscard]] std::span<const Op> scan_ops();
[[nodiscard]] std::span<const Op> selection_ops();
[[nodiscard]] std::span<const Op> shape_ops();
[[nodiscard]] std::span<const Op> tf_idf_ops();
[[nodiscard]] std::span<const Op> unique_ops();
[[nodiscard]] std::span<const Op> unpool_ops();
[[nodiscard]] std::span<const Op> varying_ops();
[[nodiscard]] std::span<const Op> view_ops();

// Returns the copy between memory orders, which only passes create.
[[nodiscard]] const Op* copy_op();
// Returns the operator for a part of a value that stays where it is; assign_storage() makes it of
// slices.
[[nodiscard]] const Op* window_op();

}  // namespace hone::graph
