#include "hone/runtime/device/cuda_api.h"

#include "hone/runtime/device/driver.h"

namespace hone::runtime::cuda {
namespace {

// Returns the name of the first function that is not there, or null. Functions whose types have
// changed since CUDA 3 have a version in their names.
const char* find_functions(void* library, Api& api) {
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    if (!find_symbol(library, name, function) && missing == nullptr) missing = name;
  };
  find("cuInit", api.init);
  find("cuDriverGetVersion", api.driver_version);
  find("cuGetErrorName", api.error_name);
  find("cuGetErrorString", api.error_text);
  find("cuDeviceGetCount", api.device_count);
  find("cuDeviceGet", api.device_get);
  find("cuDeviceGetName", api.device_name);
  find("cuDeviceGetAttribute", api.device_attribute);
  find("cuDeviceTotalMem_v2", api.device_memory);
  find("cuDevicePrimaryCtxRetain", api.retain_context);
  find("cuDevicePrimaryCtxRelease_v2", api.release_context);
  find("cuCtxPushCurrent_v2", api.push_context);
  find("cuCtxPopCurrent_v2", api.pop_context);
  find("cuMemGetInfo_v2", api.memory_info);
  find("cuMemAlloc_v2", api.allocate);
  find("cuMemFree_v2", api.free);
  find("cuMemcpyHtoDAsync_v2", api.to_device);
  find("cuMemcpyDtoHAsync_v2", api.to_host);
  find("cuMemcpyDtoDAsync_v2", api.copy);
  find("cuMemsetD8Async", api.fill);
  find("cuPointerGetAttribute", api.pointer_attribute);
  find("cuStreamCreate", api.create_stream);
  find("cuStreamDestroy_v2", api.destroy_stream);
  find("cuStreamSynchronize", api.synchronize);
  find("cuEventCreate", api.create_event);
  find("cuEventRecord", api.record_event);
  find("cuEventSynchronize", api.wait_event);
  find("cuEventQuery", api.query_event);
  find("cuStreamWaitEvent", api.stream_wait_event);
  find("cuEventElapsedTime", api.elapsed);
  find("cuEventDestroy_v2", api.destroy_event);
  find("cuModuleLoadDataEx", api.load_module);
  find("cuModuleUnload", api.unload_module);
  find("cuModuleGetFunction", api.function);
  find("cuFuncGetAttribute", api.function_attribute);
  find("cuFuncSetAttribute", api.set_function_attribute);
  find("cuLaunchKernel", api.launch);
  find("cuStreamBeginCapture_v2", api.begin_capture);
  find("cuStreamEndCapture", api.end_capture);
  find("cuGraphInstantiateWithFlags", api.instantiate);
  find("cuGraphLaunch", api.launch_graph);
  find("cuGraphDestroy", api.destroy_graph);
  find("cuGraphExecDestroy", api.destroy_graph_exec);
  (void)find_symbol(library, "cuFuncGetParamInfo", api.parameter_info);
  return missing;
}

}  // namespace

const char* error_name(const Api& api, Result code) {
  const char* name = nullptr;
  return api.error_name(code, &name) == kSuccess && name != nullptr ? name : "error";
}

bool load_api(Api& api, char* message) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    say_device(message,
               "there is no driver of CUDA here: cannot load libcuda.so.1, which comes "
               "with NVIDIA's driver");
    return false;
  }
  const char* missing = find_functions(library, api);
  int version = 0;
  if (api.driver_version != nullptr && api.driver_version(&version) == kSuccess &&
      (version < kOldestDriver || missing != nullptr)) {
    say_device(message, "the driver is of CUDA %d.%d, expected %d.%d or later", version / 1000,
               version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10);
    return false;
  }
  if (missing != nullptr) {
    say_device(message, "libcuda.so.1 has no function %s: is it NVIDIA's driver?", missing);
    return false;
  }
  const Result code = api.init(0);
  if (code == kSuccess) return true;
  if (code == kNoDevice)
    say_device(message, "CUDA has no device here (CUDA_VISIBLE_DEVICES hides devices)");
  else if (code == kNotInitialized)
    say_device(message, "CUDA cannot be used in a child of fork(), as its parent has used it");
  else
    say_device(message, "the driver of CUDA does not start: %s (%d)", error_name(api, code), code);
  return false;
}

}  // namespace hone::runtime::cuda
