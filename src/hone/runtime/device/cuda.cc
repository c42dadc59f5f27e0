// Devices of CUDA by its driver interface: the device's primary context, which all of a process
// share, and a stream of its own for each Device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "hone/runtime/device/cuda_api.h"
#include "hone/runtime/device/driver.h"

namespace hone::runtime {
namespace {

using namespace cuda;  // NOLINT: the driver is written in CUDA's terms

// A launch gets so much shared memory without asking for more.
constexpr int kSharedWithoutAsking = 48 << 10;
constexpr int64_t kMaxGrid = 0x7fffffff;

struct CudaDevice : Device {
  Api api;
  Ordinal ordinal = 0;
  Context context = nullptr;
  Stream own = nullptr;
  Stream stream = nullptr;  // own, or the caller's
};

CudaDevice& opened(Device& device) { return static_cast<CudaDevice&>(device); }

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

// Errors after which the driver refuses everything in this process.
bool is_sticky(Result code) {
  return code == kEccUncorrectable || code == kIllegalAddress || code == kLaunchTimeout ||
         code == kContextDestroyed || code == kAssert ||
         (code >= kHardwareStackError && code <= kLaunchFailed);
}

bool succeeded(Device& device, Result code, const char* what) {
  if (code == kSuccess) return true;
  CudaDevice& cuda = opened(device);
  const char* text = nullptr;
  cuda.api.error_text(code, &text);
  if (is_sticky(code)) device.lost = true;
  const char* hint = "";
  if (device.lost) hint = "; this process cannot use the device any more";
  if (code == kInvalidHandle && cuda.stream != cuda.own)
    hint = ": the caller's stream is none of this device's";
  return fail_device(device, "%s on %s failed: %s, %s (%d)%s", what, device.properties.name,
                     error_name(cuda.api, code), text == nullptr ? "no text" : text, code, hint);
}

// --- Which devices there are ---

int count_devices(char* message) {
  Api api;
  if (!load_api(api, message)) return 0;
  int count = 0;
  api.device_count(&count);
  if (count == 0)
    say_device(message, "CUDA has no device here (CUDA_VISIBLE_DEVICES hides devices)");
  return count;
}

void describe_device(const Api& api, Ordinal ordinal, DeviceProperties& out) {
  const auto attribute = [&](Attribute which) {
    int value = 0;
    return api.device_attribute(&value, which, ordinal) == kSuccess ? value : 0;
  };
  out = {};
  out.kind = DeviceKind::kCuda;
  api.device_name(out.name, sizeof out.name, ordinal);
  snprintf(out.platform, sizeof out.platform, "CUDA");
  int version = 0;
  api.driver_version(&version);
  snprintf(out.driver, sizeof out.driver, "%d.%d", version / 1000, version % 1000 / 10);
  size_t bytes = 0;
  api.device_memory(&bytes, ordinal);
  out.memory_bytes = static_cast<int64_t>(bytes);
  out.max_buffer_bytes = out.memory_bytes;
  out.shares_memory = attribute(kIntegrated) != 0;
  out.capability = 10 * attribute(kCapabilityMajor) + attribute(kCapabilityMinor);
  out.has_half = out.capability >= 53;
  out.has_double = out.has_subgroups = true;
  out.compute_units = attribute(kMultiprocessors);
  out.clock_khz = attribute(kClockRate);
  out.warp_threads = attribute(kWarpSize);
  out.max_block_threads = attribute(kMaxThreadsPerBlock);
  out.max_unit_threads = attribute(kMaxThreadsPerMultiprocessor);
  out.max_unit_blocks = attribute(kMaxBlocksPerMultiprocessor);
  out.unit_registers = attribute(kMaxRegistersPerMultiprocessor);
  const int opted = attribute(kMaxSharedPerBlockOptIn), plain = attribute(kMaxSharedPerBlock);
  out.block_shared_bytes = opted > plain ? opted : plain;
  out.unit_shared_bytes = attribute(kMaxSharedPerMultiprocessor);
  out.cache_bytes = attribute(kL2Bytes);
  out.memory_clock_khz = attribute(kMemoryClockRate);
  out.memory_bus_bits = attribute(kMemoryBusWidth);
}

bool find_ordinal(const Api& api, int index, Ordinal& out, char* message) {
  int count = 0;
  api.device_count(&count);
  if (index >= 0 && index < count && api.device_get(&out, index) == kSuccess) return true;
  say_device(message, "CUDA has no device %d here, but %d, from 0 on", index, count);
  return false;
}

bool describe(int index, DeviceProperties& out, char* message) {
  Api api;
  Ordinal ordinal = 0;
  if (!load_api(api, message) || !find_ordinal(api, index, ordinal, message)) return false;
  describe_device(api, ordinal, out);
  return true;
}

// --- Opening ---

void close_device(Device& device) {
  CudaDevice& cuda = opened(device);
  {
    const Current current(cuda);
    if (cuda.own != nullptr) {
      cuda.api.synchronize(cuda.own);
      cuda.api.destroy_stream(cuda.own);
    }
  }
  if (cuda.context != nullptr) cuda.api.release_context(cuda.ordinal);
}

Device* open_device(int index, char* message) {
  void* memory = malloc(sizeof(CudaDevice));
  if (memory == nullptr) {
    say_device(message, "out of memory");
    return nullptr;
  }
  auto* device = new (memory) CudaDevice;
  if (!load_api(device->api, message) ||
      !find_ordinal(device->api, index, device->ordinal, message)) {
    free(memory);
    return nullptr;
  }
  describe_device(device->api, device->ordinal, device->properties);
  Result code = device->api.retain_context(&device->context, device->ordinal);
  if (code == kSuccess) {
    const Current current(*device);
    code = device->api.create_stream(&device->own, kStreamNonBlocking);
    device->stream = device->own;
  }
  if (code == kSuccess) return device;
  say_device(message, "cannot open %s: %s (%d)", device->properties.name,
             error_name(device->api, code), code);
  close_device(*device);
  free(memory);
  return nullptr;
}

// --- Memory ---

bool allocate(Device& device, int64_t bytes, DeviceBuffer& out) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  Pointer pointer = 0;
  const Result code = cuda.api.allocate(&pointer, static_cast<size_t>(bytes));
  if (code == kOutOfMemory) {
    size_t unused = 0, total = 0;
    cuda.api.memory_info(&unused, &total);
    return fail_device(device,
                       "%s has no %lld bytes left: %zu MiB of %zu are free, %lld MiB are "
                       "used by this object",
                       device.properties.name, static_cast<long long>(bytes), unused >> 20,
                       total >> 20, static_cast<long long>(device.allocated >> 20));
  }
  out.handle = pointer;
  return succeeded(device, code, "taking memory");
}

void free_buffer(Device& device, const DeviceBuffer& buffer) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  cuda.api.free(buffer.handle);
}

Pointer at(const DeviceBuffer& buffer, int64_t offset) {
  return buffer.handle + static_cast<Pointer>(offset);
}

bool upload(Device& device, const DeviceBuffer& to, int64_t offset, const void* from,
            int64_t bytes) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(
      device, cuda.api.to_device(at(to, offset), from, static_cast<size_t>(bytes), cuda.stream),
      "a copy to the device");
}

bool download(Device& device, void* to, const DeviceBuffer& from, int64_t offset, int64_t bytes) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device,
                   cuda.api.to_host(to, at(from, offset), static_cast<size_t>(bytes), cuda.stream),
                   "a copy from the device");
}

bool copy(Device& device, const DeviceBuffer& to, int64_t to_offset, const DeviceBuffer& from,
          int64_t from_offset, int64_t bytes) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device,
                   cuda.api.copy(at(to, to_offset), at(from, from_offset),
                                 static_cast<size_t>(bytes), cuda.stream),
                   "a copy");
}

bool zero(Device& device, const DeviceBuffer& buffer, int64_t offset, int64_t bytes) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device,
                   cuda.api.fill(at(buffer, offset), 0, static_cast<size_t>(bytes), cuda.stream),
                   "zeroing memory");
}

bool synchronize(Device& device) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.synchronize(cuda.stream), "running kernels");
}

// --- Code ---

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

// --- Events and graphs ---

bool record(Device& device, DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  if (event.handle == 0) {
    Event made = nullptr;
    if (!succeeded(device, cuda.api.create_event(&made, 0), "making an event")) return false;
    event.handle = reinterpret_cast<uint64_t>(made);
  }
  return succeeded(device,
                   cuda.api.record_event(reinterpret_cast<Event>(event.handle), cuda.stream),
                   "recording an event");
}

bool elapsed(Device& device, const DeviceEvent& from, const DeviceEvent& to, double& seconds) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  const Event both[] = {reinterpret_cast<Event>(from.handle), reinterpret_cast<Event>(to.handle)};
  for (const Event event : both)
    if (!succeeded(device, cuda.api.wait_event(event), "running kernels")) return false;
  float milliseconds = 0;
  if (!succeeded(device, cuda.api.elapsed(&milliseconds, both[0], both[1]),
                 "reading the time of an event"))
    return false;
  seconds = static_cast<double>(milliseconds) * 1e-3;
  return true;
}

bool wait(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.wait_event(reinterpret_cast<Event>(event.handle)),
                   "running kernels");
}

bool wait_in_stream(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(
      device, cuda.api.stream_wait_event(cuda.stream, reinterpret_cast<Event>(event.handle), 0),
      "waiting for another stream");
}

void release_event(Device& device, const DeviceEvent& event) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  cuda.api.destroy_event(reinterpret_cast<Event>(event.handle));
}

bool begin_graph(Device& device) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.begin_capture(cuda.stream, kCaptureThreadLocal),
                   "recording a graph");
}

bool end_graph(Device& device, DeviceGraph& out) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  Graph graph = nullptr;
  if (!succeeded(device, cuda.api.end_capture(cuda.stream, &graph), "recording a graph"))
    return false;
  GraphExec made = nullptr;
  const Result code = cuda.api.instantiate(&made, graph, 0);
  cuda.api.destroy_graph(graph);
  if (!succeeded(device, code, "preparing a graph")) return false;
  out.handle = made;
  return true;
}

bool launch_graph(Device& device, const DeviceGraph& graph) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  return succeeded(device, cuda.api.launch_graph(static_cast<GraphExec>(graph.handle), cuda.stream),
                   "launching a graph");
}

void release_graph(Device& device, const DeviceGraph& graph) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  cuda.api.destroy_graph_exec(static_cast<GraphExec>(graph.handle));
}

// --- What a caller passes in ---

void use_stream(Device& device, bool own, void* stream) {
  CudaDevice& cuda = opened(device);
  cuda.stream = own ? cuda.own : static_cast<Stream>(stream);
}

bool check_pointer(Device& device, const void* pointer) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  const auto address = static_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer));
  unsigned type = 0;
  int ordinal = -1;
  const Result known = cuda.api.pointer_attribute(&type, kMemoryType, address);
  if (known == kInvalidValue || (known == kSuccess && type == kMemoryTypeHost))
    return fail_device(device, "the pointer is to memory of the host, expected memory of %s",
                       device.properties.name);
  if (!succeeded(device, known, "asking what a pointer is to")) return false;
  if (cuda.api.pointer_attribute(&ordinal, kDeviceOrdinal, address) != kSuccess ||
      ordinal == cuda.ordinal)
    return true;
  return fail_device(device, "the pointer is to memory of device %d, expected device %d (%s)",
                     ordinal, cuda.ordinal, device.properties.name);
}

bool check_host_pointer(Device& device, const void* pointer) {
  CudaDevice& cuda = opened(device);
  const Current current(cuda);
  const auto address = static_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer));
  unsigned type = 0, managed = 0;
  if (cuda.api.pointer_attribute(&type, kMemoryType, address) != kSuccess ||
      type != kMemoryTypeDevice)
    return true;
  if (cuda.api.pointer_attribute(&managed, kIsManaged, address) == kSuccess && managed != 0)
    return true;
  return fail_device(device, "the pointer is to memory of a device, expected memory of the host");
}

}  // namespace

const Driver kCudaDriver = {count_devices,
                            describe,
                            open_device,
                            close_device,
                            allocate,
                            free_buffer,
                            upload,
                            download,
                            copy,
                            zero,
                            synchronize,
                            load,
                            unload,
                            find_function,
                            release_function,
                            launch,
                            record,
                            elapsed,
                            wait,
                            release_event,
                            begin_graph,
                            end_graph,
                            launch_graph,
                            release_graph,
                            use_stream,
                            wait_in_stream,
                            check_pointer,
                            check_host_pointer};

}  // namespace hone::runtime
