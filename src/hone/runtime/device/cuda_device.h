// runtime/device/cuda_device.h - an open device of CUDA, for the files that implement the kind:
// cuda.cc (devices, memory, pointers), cuda_code.cc and cuda_events.cc.
#pragma once

#include "hone/runtime/device/cuda_api.h"
#include "hone/runtime/device/driver.h"

namespace hone::runtime::cuda {

struct CudaDevice : Device {
  Api api;
  Ordinal ordinal = 0;
  Context context = nullptr;
  Stream own = nullptr;
  Stream stream = nullptr;  // own, or the caller's
};

inline CudaDevice& opened(Device& device) { return static_cast<CudaDevice&>(device); }

// Makes the device's context that of this thread, and then again the one that was.
class Current {
 public:
  explicit Current(CudaDevice& device) : device_(device) {
    pushed_ = device.api.push_context(device.context) == kSuccess;
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Context before = nullptr;
    if (pushed_) device_.api.pop_context(&before);
  }

 private:
  CudaDevice& device_;
  bool pushed_ = false;
};

// Returns whether a call succeeded; else the device's error says what failed.
[[nodiscard]] bool succeeded(Device& device, Result code, const char* what);

// The functions of driver.h that are in cuda_code.cc, and those in cuda_events.cc.
[[nodiscard]] bool load(Device& device, const CodeImage& code, DeviceModule& out);
void unload(Device& device, const DeviceModule& module);
[[nodiscard]] bool find_function(Device& device, const DeviceModule& module, const char* name,
                                 DeviceFunction& inout);
void release_function(Device&, const DeviceFunction&);
[[nodiscard]] bool launch(Device& device, const DeviceFunction& function, int64_t blocks,
                          const DeviceArgument* arguments, int num_arguments, int64_t first_tile);

[[nodiscard]] bool record(Device& device, DeviceEvent& event);
[[nodiscard]] bool elapsed(Device& device, const DeviceEvent& from, const DeviceEvent& to,
                           double& seconds);
[[nodiscard]] bool wait(Device& device, const DeviceEvent& event);
[[nodiscard]] Progress poll(Device& device, const DeviceEvent& event);
[[nodiscard]] bool wait_in_stream(Device& device, const DeviceEvent& event);
void release_event(Device& device, const DeviceEvent& event);
[[nodiscard]] bool begin_graph(Device& device);
[[nodiscard]] bool end_graph(Device& device, DeviceGraph& out);
[[nodiscard]] bool launch_graph(Device& device, const DeviceGraph& graph);
void release_graph(Device& device, const DeviceGraph& graph);

}  // namespace hone::runtime::cuda
