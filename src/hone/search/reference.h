// search/reference.h - the expected outputs of a task at some thousand points, computed by machine
// code of the plain loops (no register tiles, no vectors, no packing), one output point a tile, of
// which only the sampled tiles and the borders are run. The outputs of a candidate are compared
// with these before it may become the best.
#pragma once

#include <span>
#include <vector>

#include "hone/compute/dag.h"
#include "hone/measure/operands.h"
#include "hone/tensor/tensor.h"

namespace hone::search {

struct ReferenceOptions {
  int64_t points = 4096;  // random ones; corners and edges come on top
  uint64_t seed = 1;
  int threads = 1;
};

// Returns random inputs and constants of a task, in the order of dag.params. Outputs are zero, and
// so are elements that are known to be zero.
[[nodiscard]] std::vector<Tensor> task_arguments(const compute::Dag& dag, uint64_t seed);

// Runs the plain code on `arguments`, whose outputs it leaves as they are. Returns what each output
// param must contain (measure::Expected::operand is its place among the params).
[[nodiscard]] Result<std::vector<measure::Expected>> reference_outputs(
    const compute::Dag& dag, std::span<const Tensor> arguments,
    const ReferenceOptions& options = {});

// Returns how much right outputs of a task may differ, relative to the largest: `of_sums`, or more
// where stages round to 16 bits. A sum in another order may be rounded to a neighbour there, and
// what follows may double that. Weights of 16 bits count as such, too: Winograd's and Strassen's
// algorithms round sums of them to their type.
[[nodiscard]] double tolerance_of(const compute::Dag& dag, double of_sums);

}  // namespace hone::search
