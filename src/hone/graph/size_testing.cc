#include "hone/graph/size_testing.h"

#include <algorithm>
#include <limits>

#include "hone/graph/size_values.h"

namespace hone::graph {

void visit_box(const Shape& box, const Shape& whole,
               const std::function<void(int64_t in_box, int64_t in_whole)>& visit) {
  Shape index(box.size(), 0);
  for (int64_t flat = 0; flat < num_elements(box); ++flat) {
    int64_t place = 0;
    for (size_t d = 0; d < box.size(); ++d) place = place * whole[d] + index[d];
    visit(flat, place);
    for (size_t d = box.size(); d-- > 0;) {
      if (++index[d] < box[d]) break;
      index[d] = 0;
    }
  }
}

Tensor enlarged(const Tensor& tensor, const Shape& shape) {
  constexpr double kGarbage = -1e9;
  Tensor whole(tensor.dtype(), shape);
  for (int64_t i = 0; i < whole.size(); ++i)
    whole.set(i, is_float(tensor.dtype()) ? std::numeric_limits<double>::quiet_NaN() : kGarbage);
  visit_box(tensor.shape(), shape,
            [&](int64_t from, int64_t to) { whole.set(to, tensor.at(from)); });
  return whole;
}

Boxes boxes_of(const ShapeParts& parts, const Shape& shape, const std::vector<int64_t>& sizes) {
  if (parts.empty()) return {shape, shape};
  Boxes boxes;
  for (const DimParts& dim : parts) {
    for (const SizePart& part : dim) {
      boxes.whole.push_back(part.most);
      boxes.box.push_back(part.form == kNoForm ? part.most : sizes[static_cast<size_t>(part.form)]);
    }
  }
  return boxes;
}

Tensor sizes_at(const Graph& graph, const std::vector<int64_t>& symbols) {
  const std::vector<int64_t> sizes = sizes_of(graph.varying, symbols);
  Tensor tensor(DType::kI64, {kMaxForms});
  std::copy(sizes.begin(), sizes.end(), tensor.as<int64_t>().begin());
  return tensor;
}

}  // namespace hone::graph
