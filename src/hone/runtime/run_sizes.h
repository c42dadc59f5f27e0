// runtime/run_sizes.h - the shapes of the next runs of a model whose inputs vary, which its caller
// sets one input at a time. Setting allocates nothing.
//
// Inputs that were not set follow: their extents are those of the symbols that the others tell, or
// the largest. Inputs that were set must agree when a run starts.
#pragma once

#include "hone/runtime/plan_sizes.h"

namespace hone::runtime {

struct RunSizes {
  const PlanHeader* plan = nullptr;
  // The values of the plan's forms. Each run copies them to the arena, where kernels read them.
  int64_t forms[kMaxForms] = {};
  int64_t* shapes = nullptr;  // kMaxRank extents for each tensor
  int64_t* least = nullptr;   // likewise the smallest shapes
  int64_t* bytes = nullptr;   // size of each tensor's dense array
  bool* is_whole = nullptr;   // for each tensor: it has the largest shape
  int64_t* given = nullptr;   // kMaxRank extents for each input, as they were set
  bool* is_given = nullptr;   // for each input
  char* conflict =
      nullptr;  // kErrorBytes: why the shapes that were set do not agree; "" if they do
};

// Sets the largest shapes. Returns false if there is no memory.
[[nodiscard]] bool sizes_create(RunSizes& sizes, const PlanHeader& plan);
void sizes_destroy(RunSizes& sizes);
// Sets the shape of an input. Returns false if no run can have it, with the reason in `message`
// (kErrorBytes); nothing is changed then.
[[nodiscard]] bool sizes_set(RunSizes& sizes, int input, int rank, const int64_t* dims,
                             char* message);

// Copies between a tensor's dense array and the place of its elements in one of the largest shape.
void copy_from_dense(const RunSizes& sizes, int tensor, const void* dense, char* wide);
void copy_to_dense(const RunSizes& sizes, int tensor, const char* wide, void* dense);

}  // namespace hone::runtime
