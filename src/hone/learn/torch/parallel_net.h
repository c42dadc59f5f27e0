// learn/torch/parallel_net.h - a net that several threads compute, each on a part of the rows and
// with gradients of its own. A schedule's outputs depend on no other schedule, so any parts are
// right; the loss, which compares schedules, is computed exactly, for all rows at once between the
// forward and the backward pass. Parts are summed in their order, so the same number of threads
// gives the same gradients.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "hone/learn/torch/interpreter.h"
#include "hone/learn/torch/losses.h"
#include "hone/learn/torch/row_reader.h"
#include "hone/learn/torch/workers.h"

namespace hone::learn::torch_module {

class ParallelNet {
 public:
  // The parameters, which are in that place, may change between calls, but must not move.
  ParallelNet(const HoneTorchNet& net, const Place& place, std::vector<at::Tensor> parameters,
              Workers& workers);

  // Computes the loss of the rows, whose groups are side by side, and leaves its gradients in the
  // parameters. `labels` are those of the rows; dropout draws from `seed`.
  double compute_gradients(const RowReader& reader, std::span<const int64_t> rows,
                           const Labels& labels, const HoneTorchOptions& options, uint64_t seed);
  // Evaluates all rows with other values of the parameters and without dropout. Outputs that are
  // null, or that the net does not have, are not written.
  void evaluate(const RowReader& reader, const std::vector<at::Tensor>& parameters,
                float* const* outputs) const;

 private:
  // Parameters that share the net's memory but have gradients of their own.
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

}  // namespace hone::learn::torch_module
