// sized_values.h - the tensors of runs of a graph whose inputs vary (graph/size_form.h) at some of
// its sizes (internal). Naive runs and runs of single tasks take such a graph's inputs in the
// largest shapes, where elements beyond the sizes of the run may be anything, and `hone.sizes` at
// the end. If nothing varies, all functions return what they are given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/graph/graph.h"

namespace hone {

// Returns the value of `hone.sizes`, of graph::sizes_of() or at these symbols.
[[nodiscard]] Tensor sizes_tensor(const std::vector<int64_t>& sizes);
[[nodiscard]] Tensor sizes_tensor(const graph::Varying& varying,
                                  const std::vector<int64_t>& symbols);
// Returns values of all symbols in their ranges, each drawn for itself.
[[nodiscard]] std::vector<int64_t> random_symbols(const graph::Varying& varying, uint64_t seed);
// Returns "batch=2, seq=7".
[[nodiscard]] std::string symbols_text(const graph::Varying& varying,
                                       const std::vector<int64_t>& symbols);

// Returns the elements of a run as a dense tensor, and the other way round, with NaN or -1 beyond
// them.
[[nodiscard]] Tensor part_of_run(const Tensor& whole, const graph::ShapeParts& parts,
                                 std::span<const int64_t> sizes);
[[nodiscard]] Tensor in_largest(const Tensor& part, const Shape& largest,
                                const graph::ShapeParts& parts, std::span<const int64_t> sizes);

// Returns a graph's inputs as a library takes them.
[[nodiscard]] std::vector<Tensor> arrays_of_run(const graph::Graph& graph,
                                                std::span<const Tensor> inputs);
// Returns output i of a run of the graph with these inputs as a library gives it.
[[nodiscard]] Tensor output_of_run(const graph::Graph& graph, size_t i, const Tensor& whole,
                                   std::span<const Tensor> inputs);

}  // namespace hone
