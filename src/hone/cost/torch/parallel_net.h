// cost/torch/parallel_net.h - a net that several threads compute: each takes parts of the rows,
// with gradients of its own. A schedule's outputs depend on no other schedule, so that any parts
// do; what compares schedules, the loss, is computed of all rows at once between the way there and
// the way back, and is exact. Parts are summed in their order: the same number of threads gives the
// same gradients.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "hone/cost/torch/interpreter.h"
#include "hone/cost/torch/losses.h"
#include "hone/cost/torch/row_reader.h"
#include "hone/cost/torch/workers.h"

namespace hone::cost::torch_module {

class ParallelNet {
 public:
  // `parameters`, in that place, may change between calls, but not move.
  ParallelNet(const HoneTorchNet& net, const Place& place, std::vector<at::Tensor> parameters,
              Workers& workers);

  // The loss of the rows, those of a group side by side; its gradients are left in the parameters.
  // `labels` are theirs. `seed`: of what is dropped.
  double compute_gradients(const RowReader& reader, std::span<const int64_t> rows,
                           const Labels& labels, const HoneTorchOptions& options, uint64_t seed);
  // Of all rows, with other values of the parameters; nothing is dropped. Places of outputs that
  // are null, or that the net does not have, stay.
  void evaluate(const RowReader& reader, const std::vector<at::Tensor>& parameters,
                float* const* outputs) const;

 private:
  // Parameters in the same memory as the net's, with gradients of their own.
  using Replica = std::vector<at::Tensor>;
  void add_replicas(size_t count);
  void sum_gradients(size_t parts);

  [[nodiscard]] int64_t count_parts(int64_t rows) const;

  Place place_;
  Interpreter interpreter_;
  std::vector<at::Tensor> parameters_;
  Workers& workers_;
  std::vector<Replica> replicas_;
};

}  // namespace hone::cost::torch_module
