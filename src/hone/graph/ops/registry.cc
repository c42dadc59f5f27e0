#include "hone/graph/ops/registry.h"

namespace hone::graph {

const std::vector<const Op*>& all_ops() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> list;
    for (const std::span<const Op> family :
         {convolution_ops(), matrix_ops(), elementwise_ops(), activation_ops(), math_ops(),
          logic_ops(), cast_ops(), pooling_ops(), reduction_ops(), normalization_ops(), view_ops(),
          movement_ops(), gather_ops(), scatter_ops(), pad_ops(), rearrange_ops(), generate_ops(),
          shape_ops(), internal_ops()}) {
      for (const Op& op : family) list.push_back(&op);
    }
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

}  // namespace hone::graph
