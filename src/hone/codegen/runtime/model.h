// codegen/runtime/model.h - one instance of a compiled model: its memory, its threads, its run.
// What the C interface (hone_model.h) offers, on any image: an artifact's own, or one in memory.
// Invariant: after create, run touches no allocator and the image stays read-only.
#pragma once

#include <stdint.h>

#include "hone/codegen/runtime/kernel_abi.h"
#include "hone/codegen/runtime/plan.h"
#include "hone/codegen/runtime/pool.h"

namespace hone::runtime {

struct ModelImage {
  const void* plan = nullptr;  // 8-byte aligned
  uint64_t plan_bytes = 0;
  const hone_kernel* kernels = nullptr;  // PlanHeader::num_kernels
  const void* weights = nullptr;         // 64-byte aligned, PlanHeader::weight_bytes
};

struct ModelOptions {
  int num_threads = 0;                 // 0 = all CPUs that this process may use, never more
  int64_t spin_ns = -1;                // of PoolOptions
  ParallelFor parallel_for = nullptr;  // then num_threads may be any
  void* owner = nullptr;
};

class Model;  // opaque
inline constexpr int kErrorBytes = 256;

// Null after a failure, with the reason in `message` (kErrorBytes). The image must outlive the
// model.
[[nodiscard]] Model* model_create(const ModelImage& image, const ModelOptions& options,
                                  char* message);
void model_destroy(Model* model);  // null is fine
[[nodiscard]] const PlanHeader& model_plan(const Model& model);
[[nodiscard]] int model_num_threads(const Model& model);
// 0 on success; else model_last_error() says why. Null arrays are an error.
int model_run(Model& model, const void* const* inputs, void* const* outputs);
// From now on a run is these steps, one after the other: of an image that has several for one
// place. Profiles count by the place in this list. False: there is no memory, or no such step.
[[nodiscard]] bool model_choose(Model& model, const int32_t* steps, int32_t count);
// The shape of an output in the last run; before it, the declared one.
[[nodiscard]] const int64_t* model_output_shape(const Model& model, int output);
[[nodiscard]] const char* model_last_error(const Model& model);
int model_fail(Model& model, const char* message);  // stores the message; returns 1
void model_profile(Model& model, bool enable);
[[nodiscard]] double model_step_seconds(const Model& model, int step);  // 0 if not measured

}  // namespace hone::runtime
