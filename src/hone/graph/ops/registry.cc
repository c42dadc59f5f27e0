#include "hone/graph/ops/registry.h"

#include "hone/graph/ops/microsoft_quantized.h"
#include "hone/graph/ops/ml.h"
#include "hone/graph/ops/ml_tree_walk.h"
#include "hone/graph/ops/sequence.h"

namespace hone::graph {

namespace {

// Operators that stand alone, each a function of others.
void add_standalone(std::vector<const Op*>& list) {
  for (const std::span<const Op> family :
       {deform_conv_ops(), random_ops(), split_ops(), tf_idf_ops()}) {
    for (const Op& op : family) list.push_back(&op);
  }
}

// Operators that are not ONNX's.
void add_other_domains(std::vector<const Op*>& list) {
  for (const std::span<const Op> family :
       {flex_attention_ops(), microsoft_attention_ops(), microsoft_block_ops(),
        microsoft_fused_ops(), microsoft_grouped_ops(), microsoft_integer_ops(),
        microsoft_lstm_ops(), microsoft_norm_ops(), microsoft_qlinear_ops(), ml_column_ops(),
        ml_linear_ops(), ml_tree_ops(), ml_tree_walk_ops()}) {
    for (const Op& op : family) list.push_back(&op);
  }
}

}  // namespace

const std::vector<const Op*>& all_ops() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> list;
    for (const std::span<const Op> family : {activation_ops(),
                                             cast_ops(),
                                             control_flow_ops(),
                                             convolution_ops(),
                                             determinant_ops(),
                                             elementwise_ops(),
                                             fused_attention_ops(),
                                             gather_ops(),
                                             generate_ops(),
                                             grid_sample_ops(),
                                             interleave_ops(),
                                             internal_ops(),
                                             layer_norm_ops(),
                                             logic_ops(),
                                             loss_ops(),
                                             lp_pool_ops(),
                                             math_ops(),
                                             matrix_ops(),
                                             rnn_ops(),
                                             linear_attention_ops(),
                                             rotary_embedding_ops(),
                                             attention_ops(),
                                             signal_constant_ops(),
                                             signal_ops(),
                                             einsum_ops(),
                                             conv_transpose_ops(),
                                             integer_product_ops(),
                                             quantize_ops(),
                                             movement_ops(),
                                             non_max_suppression_ops(),
                                             normalization_ops(),
                                             pad_ops(),
                                             pooling_ops(),
                                             rearrange_ops(),
                                             reduction_ops(),
                                             resample_ops(),
                                             resample_plane_ops(),
                                             resize_ops(),
                                             roi_align_ops(),
                                             scan_ops(),
                                             scatter_ops(),
                                             arg_extreme_ops(),
                                             selection_ops(),
                                             sequence_ops(),
                                             shape_ops(),
                                             unique_ops(),
                                             unpool_ops(),
                                             varying_ops(),
                                             view_ops()}) {
      for (const Op& op : family) list.push_back(&op);
    }
    add_standalone(list);
    add_other_domains(list);
    return list;
  }();
  return ops;
}

const Op* find_op(std::string_view name, int opset) {
  for (const Op* op : all_ops()) {
    if (op->name == name && opset >= op->since && opset <= op->until) return op;
  }
  return nullptr;
}

const Op* copy_op() { return find_op("hone.Copy", kMaxOpset); }
const Op* window_op() { return find_op("hone.Window", kMaxOpset); }

}  // namespace hone::graph
