// runtime/model.h - one instance of a compiled model with its memory and threads. It
// implements the C interface (hone_model.h) on any image, an artifact's own or one in memory. After
// create, run allocates no memory, and the image is never written.
#pragma once

#include <stdint.h>

#include "hone/runtime/kernel_abi.h"
#include "hone/runtime/plan.h"
#include "hone/runtime/pool.h"

namespace hone::runtime {

class Model;  // opaque type
struct DeviceRunner;

struct ModelImage {
  const void* plan = nullptr;  // 8-byte aligned
  uint64_t plan_bytes = 0;
  // PlanHeader::num_kernels of them, where those that run on a device are null.
  const hone_kernel* kernels = nullptr;
  const void* weights = nullptr;  // PlanHeader::weight_bytes, 64-byte aligned
  // Runs what the plan puts on a device (runtime/device_model.h). It is passed in, so that the
  // library of a model for CPUs is linked without it.
  const DeviceRunner* devices = nullptr;
};

struct ModelOptions {
  int num_threads = 0;   // 0 means all CPUs that this process may use, which is also the limit
  int64_t spin_ns = -1;  // as in PoolOptions
  ParallelFor parallel_for = nullptr;  // if set, num_threads has no limit
  void* owner = nullptr;
  int device = 0;  // number of the device, from 1 on; 0 means the first that the plan suits
  int64_t time_limit_ns = 0;  // a run that takes longer means that its device hangs; 0 means none
};

inline constexpr int kErrorBytes = 1024;

// Returns null after a failure, with the reason in `message` (kErrorBytes). The image must outlive
// the model.
[[nodiscard]] Model* model_create(const ModelImage& image, const ModelOptions& options,
                                  char* message);
void model_destroy(Model* model);  // accepts null
[[nodiscard]] const PlanHeader& model_plan(const Model& model);
[[nodiscard]] int model_num_threads(const Model& model);
// Returns 0 on success; otherwise model_last_error() says why. Null arrays are an error.
int model_run(Model& model, const void* const* inputs, void* const* outputs);
// Runs a model of CUDA on arrays in the device's memory, in the caller's stream, and returns when
// all has been put there; model_run() returns when all is done.
int model_run_device(Model& model, const void* const* inputs, void* const* outputs, void* stream);
// Returns the name of the device; "" for a model that runs on the host only. And the memory that
// the model has taken there.
[[nodiscard]] const char* model_device(const Model& model);
[[nodiscard]] int64_t model_device_bytes(const Model& model);
// Makes later runs execute these steps, one after the other; the image may have several
// alternatives for a step. Profiles are indexed by the position in this list. Returns false if
// there is no memory or no such step.
[[nodiscard]] bool model_choose(Model& model, const int32_t* steps, int32_t count);
// Sets the shape of an input in later runs (runtime/run_sizes.h). Returns 0 on success; otherwise
// model_last_error() says why, and nothing is changed.
int model_set_input_shape(Model& model, int input, int rank, const int64_t* dims);
// Returns the shape of an input in later runs, or null if the shapes that were set do not agree.
[[nodiscard]] const int64_t* model_input_shape(const Model& model, int input);
[[nodiscard]] const int64_t* model_least_input_shape(const Model& model, int input);
// Returns the shape of an output in later runs, null as above; or, if it depends on the data, that
// of the last run.
[[nodiscard]] const int64_t* model_output_shape(const Model& model, int output);
// Returns why the shapes that were set do not agree; "" if they do.
[[nodiscard]] const char* model_shape_conflict(const Model& model);
[[nodiscard]] const char* model_last_error(const Model& model);
int model_fail(Model& model, const char* message);  // stores the message and returns 1
void model_profile(Model& model, bool enable);
[[nodiscard]] double model_step_seconds(const Model& model, int step);  // 0 if not measured
// While it is enabled, runs record when each thread works on each step of the host, and profiles.
// Returns false if there is no memory.
[[nodiscard]] bool model_trace(Model& model, bool enable);
// Sets the nanoseconds since the start of the last run. Returns false if the thread had no work of
// this step.
[[nodiscard]] bool model_step_span(const Model& model, int step, int thread, int64_t* begin_ns,
                                   int64_t* end_ns);

}  // namespace hone::runtime
