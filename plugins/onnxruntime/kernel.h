// kernel.h - a fused node of ONNX Runtime that runs a library of Hone.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hone/model.h"

#include "ort_graph.h"

namespace hone::ort {

// Inputs and outputs are used in ONNX Runtime's memory. Runs of one node may overlap: each needs a
// model of its own, with its memory and threads, and they share the weights.
class Kernel : public OrtNodeComputeInfo {
 public:
  // The names and order of inputs and outputs are those of the fused node, whose values are in
  // `graph`.
  [[nodiscard]] static Result<std::unique_ptr<Kernel>> create(const OrtApi& api,
                                                              const std::string& library,
                                                              int threads, const GraphNode& fused,
                                                              const Graph& graph);

 private:
  // A loaded model with the arrays of its next run.
  struct Instance {
    explicit Instance(Model loaded) : model(std::move(loaded)) {}
    Model model;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<Tensor> own;  // arrays of outputs whose shape the run decides
    Shape shape;              // what is being set
  };
  struct Port {
    size_t place = 0;   // of the fused node's inputs or outputs
    bool late = false;  // the run decides the shape of the output
    size_t bytes = 0;   // of the largest array
  };

  Kernel(const OrtApi& api, std::string library, int threads);
  [[nodiscard]] Status connect(const GraphNode& fused, const Graph& graph);
  [[nodiscard]] Result<std::unique_ptr<Instance>> take();
  [[nodiscard]] Status run(OrtKernelContext* context);
  [[nodiscard]] Status set_inputs(Instance& instance, const OrtKernelContext* context);
  [[nodiscard]] Status set_outputs(Instance& instance, OrtKernelContext* context);
  [[nodiscard]] Status deliver_late(Instance& instance, OrtKernelContext* context);
  [[nodiscard]] Result<void*> output_array(OrtKernelContext* context, size_t i, const Shape& shape);

  const OrtApi& api_;
  std::string library_;
  int threads_;
  std::vector<Port> inputs_, outputs_;  // in the library's order
  std::mutex mutex_;
  std::vector<std::unique_ptr<Instance>> idle_;
};

}  // namespace hone::ort
