// learn/torch/meta_net.h - a net that is adapted to many tasks at once, each by a thread and with
// gradients of its own. Gradients are summed in the order of the tasks, so that any number of
// threads gives the same ones.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "hone/learn/torch/inner_loop.h"
#include "hone/learn/torch/interpreter.h"
#include "hone/learn/torch/meta_tasks.h"
#include "hone/learn/torch/row_reader.h"
#include "hone/learn/torch/workers.h"

namespace hone::learn::torch_module {

struct AdaptedLoss {
  double plain = 0, adapted = 0;  // means over the tasks
};

class MetaNet {
 public:
  // Everything must outlive this object.
  MetaNet(const HoneTorchNet& net, const Place& place, const HoneTorchOptions& options,
          Workers& workers)
      : place_(place), interpreter_(net, place), options_(options), workers_(workers) {}

  // Leaves the gradient of the mean loss after adaptation in the parameters, or for Reptile its
  // direction. Returns that loss. Dropout draws from `seed`.
  double compute_gradients(const RowReader& reader, const HoneTorchRows& rows,
                           std::span<const MetaTask> tasks,
                           const std::vector<at::Tensor>& parameters, uint64_t seed) const;
  // Returns the loss of the query sets before and after adaptation to the support sets, without
  // dropout.
  [[nodiscard]] AdaptedLoss judge(const RowReader& reader, const HoneTorchRows& rows,
                                  std::span<const MetaTask> tasks,
                                  const std::vector<at::Tensor>& parameters) const;
  // Returns the loss of the rows of a batch. Dropout draws from `seed`; none if it is null. What is
  // returned refers to the arguments.
  [[nodiscard]] LossOf loss_on(const RowReader& reader, const HoneTorchRows& rows,
                               const Batch& batch, const uint64_t* seed) const;

 private:
  [[nodiscard]] MetaGradient gradient_of(const RowReader& reader, const HoneTorchRows& rows,
                                         const MetaTask& task,
                                         const std::vector<at::Tensor>& parameters,
                                         uint64_t seed) const;

  Place place_;
  Interpreter interpreter_;
  const HoneTorchOptions& options_;
  Workers& workers_;
};

// Returns the inner loop of the options.
[[nodiscard]] InnerLoop inner_loop_of(const HoneTorchMetaOptions& meta);
// Returns copies of the parameters, which share their memory but not their gradients.
[[nodiscard]] std::vector<at::Tensor> twins_of(const std::vector<at::Tensor>& parameters);

}  // namespace hone::learn::torch_module
