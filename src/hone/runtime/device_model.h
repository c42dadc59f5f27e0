// runtime/device_model.h - the part of a model that runs on a device: its memory there, its
// kernels, and the order of a run. Weights are uploaded once. Steps of the host, between steps of
// the device, work on copies of what they touch. On CUDA, a run with the same arrays as the one
// before launches graphs, which cost the CPU little.
#pragma once

#include <stdint.h>

namespace hone::runtime {

class Model;
class DeviceModel;  // opaque type
struct ModelOptions;

// The alignment of inputs and outputs in its memory there, as CUDA's own allocations have at least.
constexpr int64_t kArrayAlignment = 256;

// The functions behind one pointer, by which a library that needs them is linked with them.
struct DeviceRunner {
  // The model's pool, memory and phases are made. Returns null after a failure, with the reason in
  // `message` (kErrorBytes).
  DeviceModel* (*create)(Model& model, const ModelOptions& options, char* message);
  void (*destroy)(DeviceModel* device);
  bool (*choose)(DeviceModel& device, const int32_t* steps, int32_t count);
  // These return 0, or 1 with the reason in the model's error.
  int (*run)(DeviceModel& device, const void* const* inputs, void* const* outputs);
  int (*run_there)(DeviceModel& device, const void* const* inputs, void* const* outputs,
                   void* stream);
  const char* (*name)(const DeviceModel& device);
  int64_t (*bytes)(const DeviceModel& device);
};

extern "C" const DeviceRunner hone_device_runner;

}  // namespace hone::runtime
