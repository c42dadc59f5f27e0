#include "hone/learn/torch/labels.h"

#include <cmath>

#include "hone/learn/torch/row_reader.h"

namespace hone::learn::torch_module {
namespace {

at::Tensor values_of(const float* values, const std::vector<int64_t>& rows) {
  at::Tensor labels = at::full({std::ssize(rows)}, NAN);
  float* to = labels.data_ptr<float>();
  if (values == nullptr) return labels;
  for (const int64_t row : rows) *to++ = values[row];
  return labels;
}

}  // namespace

Labels labels_of(const HoneTorchRows& all, const Batch& batch) {
  return {values_of(all.speed, batch.rows), values_of(all.log_time, batch.rows),
          values_of(all.memory_bound, batch.rows), values_of(all.core_bound, batch.rows),
          batch.group_sizes};
}

Batch whole_batch(const HoneTorchRows& rows) {
  Batch batch{all_rows(rows.num_rows), {}};
  for (int64_t g = 0; g < rows.num_groups; ++g)
    batch.group_sizes.push_back(rows.group_begin[g + 1] - rows.group_begin[g]);
  return batch;
}

}  // namespace hone::learn::torch_module
