// search/reference.h - what a task's outputs must be, at some thousand points: machine code of the
// plain loops (no register tiles, no vectors, no packing), one output point a tile, of which only
// the sampled tiles and the borders are run. What a candidate computes is compared with this before
// it may become a best.
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

// Random inputs and constants of a task, in the order of dag.params; outputs are zero, and so is
// what is known to be.
[[nodiscard]] std::vector<Tensor> task_arguments(const compute::Dag& dag, uint64_t seed);

// Runs the plain code on `arguments`, whose outputs it leaves as they are: what each output param
// must contain (measure::Expected::operand is its place among the params).
[[nodiscard]] Result<std::vector<measure::Expected>> reference_outputs(
    const compute::Dag& dag, std::span<const Tensor> arguments,
    const ReferenceOptions& options = {});

}  // namespace hone::search
