// naive_run.h - runs a graph as it was imported, node by node: no pass, no layout, no fusion, no
// memory plan. The oracle for models too large for the interpreter.
//
// A node is machine code of its plain loops; where that would take too long, of the default
// schedule of its task.
#pragma once

#include <functional>

#include "hone/base/cancel.h"
#include "hone/base/thread_pool.h"
#include "hone/graph/graph.h"
#include "hone/tensor/tensor.h"

namespace hone {

struct NaiveOptions {
  int threads = 1;
  double max_plain_flops = 100e6;  // of a node, some 0.2 s; beyond: the default schedule
  const std::atomic<bool>* interrupted = nullptr;
};

// Calls `on_value` for each result of each node, in order. A tensor that the callback does not keep
// is freed when its last reader has run.
[[nodiscard]] Status naive_run(
    const graph::Graph& graph, const std::vector<Tensor>& inputs, const NaiveOptions& options,
    const std::function<void(const graph::Node&, graph::ValueId, const Tensor&)>& on_value);

}  // namespace hone
