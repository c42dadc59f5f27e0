// fuzz/random_task.h - random tasks of every kernel family with odd extents, as the compiler makes
// them of a model of a few operators: with its layouts, borders, fused followers and copies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/base/rng.h"
#include "hone/compute/dag.h"
#include "hone/tensor/tensor.h"

namespace hone::fuzz {

struct RandomTask {
  compute::Dag dag;
  std::map<size_t, Tensor> indices;  // of dag.params, the constants that are integers
};

struct RandomTasks {
  std::string family;
  std::vector<RandomTask> all;  // distinct ones; none if the model was not legal
  // A random operator: in some, whether a NaN stays depends on the order of the elements.
  bool is_any_operator = false;
};

// Small enough for the interpreter.
[[nodiscard]] RandomTasks random_tasks(Rng& rng);

}  // namespace hone::fuzz
