// naive_run.h - runs a graph as it was imported, node by node: no pass, no layout, no fusion, no
// memory plan. The oracle for models too large for the interpreter.
//
// A node is machine code of its plain loops; where that would take too long, of the default
// schedule of its task; where making code would take longer than all else, it is interpreted.
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
  double max_plain_flops = 100e6;  // of a node, some 0.2 s; beyond: the default schedule
  double max_interpreted = 0;      // operations of a node; beyond: machine code
  const std::atomic<bool>* interrupted = nullptr;
  double deadline = 0;  // on real_clock(): Code::kTimeout from then on; 0: there is none
};

// A graph's nodes, each for itself. The graph must outlive it.
class NaiveModel {
 public:
  struct State;
  [[nodiscard]] static Result<NaiveModel> create(const graph::Graph& graph,
                                                 const NaiveOptions& options);
  [[nodiscard]] int kernels() const;   // distinct ones that need machine code
  [[nodiscard]] double flops() const;  // of a run
  // Makes the machine code, which run() needs.
  [[nodiscard]] Status compile();
  NaiveModel(NaiveModel&&) noexcept;
  NaiveModel& operator=(NaiveModel&&) noexcept;
  ~NaiveModel();

  // Calls `on_value` for each result of each node, in order; `made`: it is memory of its own, not
  // a view of another value, so that the callback may change it. A tensor that the callback does
  // not keep is freed when its last reader has run.
  using OnValue =
      std::function<void(const graph::Node&, graph::ValueId, Tensor& tensor, bool made)>;
  [[nodiscard]] Status run(const std::vector<Tensor>& inputs, const OnValue& on_value) const;
  void set_deadline(double deadline);

 private:
  explicit NaiveModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// All in one, with a callback that only looks.
[[nodiscard]] Status naive_run(
    const graph::Graph& graph, const std::vector<Tensor>& inputs, const NaiveOptions& options,
    const std::function<void(const graph::Node&, graph::ValueId, const Tensor&)>& on_value);

}  // namespace hone
