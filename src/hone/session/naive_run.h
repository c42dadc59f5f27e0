// naive_run.h - runs a graph as it was imported, node by node: without passes, layouts, fusion or a
// memory plan. It is the oracle for models that are too large for the interpreter.
//
// A node is compiled to plain loops. If these would take too long, it is compiled with the default
// schedule of its task. If it has so few operations that compiling takes longer than interpreting,
// it is interpreted.
#pragma once

#include <functional>
#include <memory>

#include "hone/base/cancel.h"
#include "hone/base/thread_pool.h"
#include "hone/graph/graph.h"
#include "hone/tensor/tensor.h"

namespace hone {

struct NaiveOptions {
  int threads = 1;
  // A node with more FLOPs is compiled with the default schedule; so many take some 0.2 s.
  double max_plain_flops = 100e6;
  double max_interpreted = 0;  // a node with more operations is compiled
  const std::atomic<bool>* interrupted = nullptr;
  double deadline = 0;  // on real_clock(), then Code::kTimeout; 0: none
};

// The nodes of a graph, each compiled alone. The graph must outlive this.
class NaiveModel {
 public:
  struct State;
  [[nodiscard]] static Result<NaiveModel> create(const graph::Graph& graph,
                                                 const NaiveOptions& options);
  [[nodiscard]] int kernels() const;   // number of distinct nodes that are compiled
  [[nodiscard]] double flops() const;  // FLOPs of a run
  // Compiles the nodes. It must be called before run().
  [[nodiscard]] Status compile();
  NaiveModel(NaiveModel&&) noexcept;
  NaiveModel& operator=(NaiveModel&&) noexcept;
  ~NaiveModel();

  // Called for each result of each node, in order. If `made`, the tensor has memory of its own and
  // is no view of another value, so that the callback may change it. A tensor that the callback
  // does not keep is freed after its last reader has run. For values of a loop's body, in each of
  // its turns, the id is kNoValue: they are none of this graph.
  using OnValue =
      std::function<void(const graph::Node&, graph::ValueId, Tensor& tensor, bool made)>;
  [[nodiscard]] Status run(const std::vector<Tensor>& inputs, const OnValue& on_value) const;
  void set_deadline(double deadline);

 private:
  explicit NaiveModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Compiles and runs a graph, with a callback that does not change values.
[[nodiscard]] Status naive_run(
    const graph::Graph& graph, const std::vector<Tensor>& inputs, const NaiveOptions& options,
    const std::function<void(const graph::Node&, graph::ValueId, const Tensor&)>& on_value);

}  // namespace hone
