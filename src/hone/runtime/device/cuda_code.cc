// Code on devices of CUDA: modules, their functions and launches.
#include "hone/runtime/device/cuda_device.h"

namespace hone::runtime::cuda {
namespace {

// A launch gets so much shared memory without asking for more.
constexpr int kSharedWithoutAsking = 48 << 10;
constexpr int64_t kMaxGrid = 0x7fffffff;

// Returns the number of parameters that the code has; -1 if the driver cannot say (before 12.4).
int count_parameters(const Api& api, Function function) {
  if (api.parameter_info == nullptr) return -1;
  int count = 0;
  size_t offset = 0, bytes = 0;
  while (count <= kMaxDeviceArguments + 1 &&
         api.parameter_info(function, static_cast<size_t>(count), &offset, &bytes) == kSuccess)
    ++count;
  return count;
}

}  // namespace

bool load(Device& device, const CodeImage& code, DeviceModule& out) {
  CudaDevice& cuda = opened(device);
  if (code.format != CodeFormat::kCubin && code.format != CodeFormat::kPtx)
    return fail_device(device, "the code is for OpenCL, the device is of CUDA");
  const Current current(cuda);
  char log[kDeviceErrorBytes / 2] = "";
  JitOption options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  Module module = nullptr;
  const Result result = cuda.api.load_module(&module, code.data, 2, options, values);
  if (result == kSuccess) {
    out.handle = module;
    return true;
  }
  const char* why = "";
  if (result == kNoBinaryForGpu || result == kInvalidImage)
    why = "; it is damaged or for another architecture";
  if (result == kUnsupportedPtxVersion) why = "; the driver is older than the compiler";
  return fail_device(device, "the %s of sm_%d cannot be loaded on %s (sm_%d): %s (%d)%s%s%s",
                     code.format == CodeFormat::kPtx ? "PTX" : "cubin", code.capability,
                     device.properties.name, device.properties.capability,
                     error_name(cuda.api, result), result, why, log[0] == '\0' ? "" : "\n", log);
}

void unload(Device& device, const DeviceModule& module) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  cuda.api.unload_module(static_cast<Module>(module.handle));
}

bool find_function(Device& device, const DeviceModule& module, const char* name,
                   DeviceFunction& inout) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  Function function = nullptr;
  if (cuda.api.function(&function, static_cast<Module>(module.handle), name) != kSuccess)
    return fail_device(device, "there is no kernel %s in this code", name);
  const auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    return cuda.api.function_attribute(&value, which, function) == kSuccess ? value : 0;
  };
  const int most = attribute(kFunctionMaxThreads);
  inout.num_parameters = count_parameters(cuda.api, function);
  inout.registers = attribute(kFunctionRegisters);
  inout.local_bytes = attribute(kFunctionLocalBytes);
  if (inout.threads > most)
    return fail_device(device,
                       "kernel %s has blocks of %d threads, %s runs at most %d of it, with %d "
                       "registers each",
                       name, inout.threads, device.properties.name, most, inout.registers);
  const int64_t shared = attribute(kFunctionSharedBytes) + inout.shared_bytes;
  if (shared > device.properties.block_shared_bytes)
    return fail_device(device, "kernel %s needs %lld bytes of shared memory, %s has %lld", name,
                       static_cast<long long>(shared), device.properties.name,
                       static_cast<long long>(device.properties.block_shared_bytes));
  if (shared > kSharedWithoutAsking &&
      !succeeded(device,
                 cuda.api.set_function_attribute(function, kFunctionMaxDynamicShared,
                                                 static_cast<int>(inout.shared_bytes)),
                 "asking for shared memory"))
    return false;
  inout.handle = function;
  return true;
}

void release_function(Device&, const DeviceFunction&) {}  // it is its module's

bool launch(Device& device, const DeviceFunction& function, int64_t blocks,
            const DeviceArgument* arguments, int num_arguments, int64_t first_tile) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  Pointer pointers[kMaxDeviceArguments];
  void* places[kMaxDeviceArguments + 1];
  for (int i = 0; i < num_arguments; ++i) {
    pointers[i] = arguments[i].buffer + static_cast<Pointer>(arguments[i].offset);
    places[i] = &pointers[i];
  }
  places[num_arguments] = &first_tile;
  for (; blocks > 0; blocks -= kMaxGrid, first_tile += kMaxGrid) {
    const auto grid = static_cast<unsigned>(blocks < kMaxGrid ? blocks : kMaxGrid);
    const Result code = cuda.api.launch(
        static_cast<Function>(function.handle), grid, 1, 1, static_cast<unsigned>(function.threads),
        1, 1, static_cast<unsigned>(function.shared_bytes), cuda.stream, places, nullptr);
    if (!succeeded(device, code, "launching a kernel")) return false;
  }
  return true;
}

}  // namespace hone::runtime::cuda
