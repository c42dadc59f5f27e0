// Devices of OpenCL 1.2 and later: a context, a queue in order and its kernels for each Device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>
#include <new>

#include "hone/runtime/device/driver.h"
#include "hone/runtime/device/opencl_api.h"

namespace hone::runtime {
namespace {

using namespace opencl;  // NOLINT: the driver is written in OpenCL's terms

struct OpenClDevice : Device {
  Api api;
  DeviceId id = nullptr;
  Context context = nullptr;
  Queue queue = nullptr;
};

OpenClDevice& opened(Device& device) { return static_cast<OpenClDevice&>(device); }
Memory memory_of(uint64_t handle) { return reinterpret_cast<Memory>(handle); }
Memory memory_of(const DeviceBuffer& buffer) { return memory_of(buffer.handle); }

bool succeeded(Device& device, Int code, const char* what) {
  if (code == kSuccess) return true;
  const char* name = device.properties.name;
  if (code == kMemoryFailure || code == kOutOfHostMemory)
    return fail_device(device, "%s: %s is out of memory (%s), with %lld MiB used by this object",
                       what, name, error_name(code),
                       static_cast<long long>(device.allocated >> 20));
  return fail_device(device, "%s on %s failed: %s (%d)", what, name, error_name(code), code);
}

// Errors that are seen when the device is waited for come from a kernel that did not end well.
bool finished(Device& device, Int code, const char* what) {
  if (code != kSuccess) device.lost = true;
  return succeeded(device, code, what);
}

// --- Which devices there are ---

constexpr UInt kMaxPlatforms = 16, kMaxDevices = 64;

struct DeviceList {
  DeviceId ids[kMaxDevices];
  Platform platforms[kMaxDevices];
  int count = 0;
};

template <typename T>
T number_of(const Api& api, DeviceId id, UInt what) {
  T value = {};
  return api.device_info(id, what, sizeof value, &value, nullptr) == kSuccess ? value : T{};
}

// Adds the platform's devices that are CPUs, or those that are not.
void add_devices(const Api& api, Platform platform, bool cpus, DeviceList& list) {
  DeviceId ids[kMaxDevices];
  UInt count = 0;
  if (api.get_devices(platform, kTypeAll, kMaxDevices, ids, &count) != kSuccess) return;
  for (UInt i = 0; i < count && i < kMaxDevices; ++i) {
    const bool is_cpu = (number_of<Bits>(api, ids[i], kType) & kTypeCpu) != 0;
    const bool usable = number_of<UInt>(api, ids[i], kAvailable) != 0 &&
                        number_of<UInt>(api, ids[i], kCompilerAvailable) != 0;
    if (is_cpu != cpus || !usable || list.count == static_cast<int>(kMaxDevices)) continue;
    list.platforms[list.count] = platform;
    list.ids[list.count++] = ids[i];
  }
}

bool list_devices(const Api& api, DeviceList& list, char* message) {
  Platform platforms[kMaxPlatforms];
  UInt count = 0;
  if (api.get_platforms(kMaxPlatforms, platforms, &count) != kSuccess) count = 0;
  if (count > kMaxPlatforms) count = kMaxPlatforms;
  for (const bool cpus : {false, true})
    for (UInt i = 0; i < count; ++i) add_devices(api, platforms[i], cpus, list);
  if (list.count > 0) return true;
  say_device(message,
             "OpenCL has no device here: install the driver of the GPU, or Debian's "
             "pocl-opencl-icd, which runs on the CPU");
  return false;
}

void describe_device(const Api& api, const DeviceList& list, int index, DeviceProperties& out) {
  const DeviceId id = list.ids[index];
  out = {};
  out.kind = DeviceKind::kOpenCl;
  api.platform_info(list.platforms[index], kPlatformName, sizeof out.platform - 1, out.platform,
                    nullptr);
  api.device_info(id, kName, sizeof out.name - 1, out.name, nullptr);
  api.device_info(id, kDriverVersion, sizeof out.driver - 1, out.driver, nullptr);
  out.is_cpu = (number_of<Bits>(api, id, kType) & kTypeCpu) != 0;
  out.shares_memory = number_of<UInt>(api, id, kUnifiedMemory) != 0;
  size_t bytes = 0;
  if (api.device_info(id, kExtensions, 0, nullptr, &bytes) == kSuccess && bytes > 0) {
    char* names = static_cast<char*>(calloc(bytes + 1, 1));
    if (names != nullptr && api.device_info(id, kExtensions, bytes, names, nullptr) == kSuccess) {
      out.has_half = strstr(names, "cl_khr_fp16") != nullptr;
      out.has_double = strstr(names, "cl_khr_fp64") != nullptr;
      out.has_subgroups = strstr(names, "cl_khr_subgroups") != nullptr;
    }
    free(names);
  }
  out.compute_units = static_cast<int32_t>(number_of<UInt>(api, id, kComputeUnits));
  out.clock_khz = static_cast<int32_t>(number_of<UInt>(api, id, kClockMhz) * 1000);
  out.max_block_threads = static_cast<int32_t>(number_of<size_t>(api, id, kMaxGroupSize));
  out.block_shared_bytes = static_cast<int64_t>(number_of<uint64_t>(api, id, kLocalBytes));
  out.memory_bytes = static_cast<int64_t>(number_of<uint64_t>(api, id, kMemoryBytes));
  out.max_buffer_bytes = static_cast<int64_t>(number_of<uint64_t>(api, id, kMaxAllocation));
  out.cache_bytes = static_cast<int64_t>(number_of<uint64_t>(api, id, kCacheBytes));
}

int count_devices(char* message) {
  Api api;
  DeviceList list;
  return load_api(api, message) && list_devices(api, list, message) ? list.count : 0;
}

bool index_fits(const DeviceList& list, int index, char* message) {
  if (index >= 0 && index < list.count) return true;
  say_device(message, "OpenCL has no device %d here, but %d, from 0 on", index, list.count);
  return false;
}

bool describe(int index, DeviceProperties& out, char* message) {
  Api api;
  DeviceList list;
  if (!load_api(api, message) || !list_devices(api, list, message) ||
      !index_fits(list, index, message))
    return false;
  describe_device(api, list, index, out);
  return true;
}

// --- Opening ---

void close_device(Device& device) {
  OpenClDevice& cl = opened(device);
  if (cl.queue != nullptr) {
    cl.api.finish(cl.queue);
    cl.api.release_queue(cl.queue);
  }
  if (cl.context != nullptr) cl.api.release_context(cl.context);
}

Device* open_device(int index, char* message) {
  void* memory = malloc(sizeof(OpenClDevice));
  if (memory == nullptr) {
    say_device(message, "out of memory");
    return nullptr;
  }
  auto* device = new (memory) OpenClDevice;
  DeviceList list;
  if (!load_api(device->api, message) || !list_devices(device->api, list, message) ||
      !index_fits(list, index, message)) {
    free(memory);
    return nullptr;
  }
  describe_device(device->api, list, index, device->properties);
  device->id = list.ids[index];
  Int code = kSuccess;
  device->context = device->api.create_context(nullptr, 1, &device->id, nullptr, nullptr, &code);
  if (code == kSuccess)
    device->queue = device->api.create_queue(device->context, device->id, kProfiling, &code);
  if (code == kSuccess) return device;
  say_device(message, "cannot open %s: %s (%d)", device->properties.name, error_name(code), code);
  close_device(*device);
  free(memory);
  return nullptr;
}

// --- Memory ---

bool allocate(Device& device, int64_t bytes, DeviceBuffer& out) {
  OpenClDevice& cl = opened(device);
  Int code = kSuccess;
  const Memory memory =
      cl.api.create_buffer(cl.context, kReadWrite, static_cast<size_t>(bytes), nullptr, &code);
  if (code != kSuccess)
    return fail_device(device,
                       "%s has no %lld bytes left: %s (%d), with %lld MiB of %lld used "
                       "by this object",
                       device.properties.name, static_cast<long long>(bytes), error_name(code),
                       code, static_cast<long long>(device.allocated >> 20),
                       static_cast<long long>(device.properties.memory_bytes >> 20));
  out.handle = reinterpret_cast<uint64_t>(memory);
  return true;
}

void free_buffer(Device& device, const DeviceBuffer& buffer) {
  opened(device).api.release_memory(memory_of(buffer));
}

bool upload(Device& device, const DeviceBuffer& to, int64_t offset, const void* from,
            int64_t bytes) {
  OpenClDevice& cl = opened(device);
  return succeeded(device,
                   cl.api.write(cl.queue, memory_of(to), 0, static_cast<size_t>(offset),
                                static_cast<size_t>(bytes), from, 0, nullptr, nullptr),
                   "a copy to the device");
}

bool download(Device& device, void* to, const DeviceBuffer& from, int64_t offset, int64_t bytes) {
  OpenClDevice& cl = opened(device);
  return succeeded(device,
                   cl.api.read(cl.queue, memory_of(from), 0, static_cast<size_t>(offset),
                               static_cast<size_t>(bytes), to, 0, nullptr, nullptr),
                   "a copy from the device");
}

bool copy(Device& device, const DeviceBuffer& to, int64_t to_offset, const DeviceBuffer& from,
          int64_t from_offset, int64_t bytes) {
  OpenClDevice& cl = opened(device);
  return succeeded(
      device,
      cl.api.copy(cl.queue, memory_of(from), memory_of(to), static_cast<size_t>(from_offset),
                  static_cast<size_t>(to_offset), static_cast<size_t>(bytes), 0, nullptr, nullptr),
      "a copy");
}

bool zero(Device& device, const DeviceBuffer& buffer, int64_t offset, int64_t bytes) {
  OpenClDevice& cl = opened(device);
  const unsigned char nothing = 0;
  return succeeded(
      device,
      cl.api.fill(cl.queue, memory_of(buffer), &nothing, 1, static_cast<size_t>(offset),
                  static_cast<size_t>(bytes), 0, nullptr, nullptr),
      "zeroing memory");
}

bool synchronize(Device& device) {
  OpenClDevice& cl = opened(device);
  return finished(device, cl.api.finish(cl.queue), "running kernels");
}

// --- Code ---

// The message of a build that failed, with as much of the compiler's text as fits.
bool fail_build(OpenClDevice& cl, Program program, Int code) {
  fail_device(cl, "the OpenCL program cannot be built for %s: %s (%d)", cl.properties.name,
              error_name(code), code);
  size_t bytes = 0;
  if (cl.api.build_info(program, cl.id, kBuildLog, 0, nullptr, &bytes) != kSuccess || bytes < 2)
    return false;
  char* log = static_cast<char*>(calloc(bytes + 1, 1));
  if (log == nullptr) return false;
  if (cl.api.build_info(program, cl.id, kBuildLog, bytes, log, nullptr) == kSuccess) {
    const size_t used = strlen(cl.error);
    snprintf(cl.error + used, sizeof cl.error - used, "\n%s", log);
  }
  free(log);
  return false;
}

bool load(Device& device, const CodeImage& code, DeviceModule& out) {
  OpenClDevice& cl = opened(device);
  if (code.format != CodeFormat::kOpenClSource && code.format != CodeFormat::kOpenClBinary)
    return fail_device(device, "the code is for CUDA, the device is of OpenCL");
  const size_t bytes = static_cast<size_t>(code.bytes);
  Int result = kSuccess;
  Program program = nullptr;
  if (code.format == CodeFormat::kOpenClSource) {
    const char* text = static_cast<const char*>(code.data);
    program = cl.api.program_of_source(cl.context, 1, &text, &bytes, &result);
  } else {
    const auto* binary = static_cast<const unsigned char*>(code.data);
    program = cl.api.program_of_binary(cl.context, 1, &cl.id, &bytes, &binary, nullptr, &result);
  }
  if (!succeeded(device, result, "loading a program")) return false;
  result = cl.api.build(program, 1, &cl.id, code.options, nullptr, nullptr);
  if (result != kSuccess) {
    fail_build(cl, program, result);
    cl.api.release_program(program);
    return false;
  }
  out.handle = program;
  return true;
}

// A program has one device, so it has one binary.
int64_t binary(Device& device, const DeviceModule& module, void* to, int64_t capacity) {
  OpenClDevice& cl = opened(device);
  const auto program = static_cast<Program>(module.handle);
  size_t bytes = 0;
  if (!succeeded(device, cl.api.program_info(program, kBinarySizes, sizeof bytes, &bytes, nullptr),
                 "asking for a program's binary"))
    return -1;
  if (bytes > static_cast<size_t>(capacity)) return static_cast<int64_t>(bytes);
  const bool copied =
      succeeded(device, cl.api.program_info(program, kBinaries, sizeof to, &to, nullptr),
                "copying a program's binary");
  return copied ? static_cast<int64_t>(bytes) : -1;
}

void unload(Device& device, const DeviceModule& module) {
  opened(device).api.release_program(static_cast<Program>(module.handle));
}

bool function_fits(OpenClDevice& cl, Kernel kernel, const char* name,
                   const DeviceFunction& function) {
  size_t threads = 0;
  uint64_t local = 0;
  const auto ask = [&](UInt what, auto& value) {
    return cl.api.kernel_group_info(kernel, cl.id, what, sizeof value, &value, nullptr) == kSuccess;
  };
  if (ask(kGroupSize, threads) && static_cast<size_t>(function.threads) > threads)
    return fail_device(cl, "kernel %s has blocks of %d threads, %s runs at most %zu of it", name,
                       function.threads, cl.properties.name, threads);
  if (ask(kKernelLocalBytes, local) &&
      local > static_cast<uint64_t>(cl.properties.block_shared_bytes))
    return fail_device(cl, "kernel %s needs %llu bytes of local memory, %s has %lld", name,
                       static_cast<unsigned long long>(local), cl.properties.name,
                       static_cast<long long>(cl.properties.block_shared_bytes));
  return true;
}

// A kernel object holds its arguments, so each DeviceFunction has one of its own.
bool find_function(Device& device, const DeviceModule& module, const char* name,
                   DeviceFunction& inout) {
  OpenClDevice& cl = opened(device);
  Int code = kSuccess;
  const Kernel kernel = cl.api.create_kernel(static_cast<Program>(module.handle), name, &code);
  if (code != kSuccess)
    return fail_device(device, "there is no kernel %s in this program: %s (%d)", name,
                       error_name(code), code);
  UInt parameters = 0;
  code = cl.api.kernel_info(kernel, kNumArgs, sizeof parameters, &parameters, nullptr);
  if (!succeeded(device, code, "asking for a kernel's parameters") ||
      !function_fits(cl, kernel, name, inout)) {
    cl.api.release_kernel(kernel);
    return false;
  }
  inout.num_parameters = static_cast<int>(parameters);
  inout.handle = kernel;
  return true;
}

void release_function(Device& device, const DeviceFunction& function) {
  opened(device).api.release_kernel(static_cast<Kernel>(function.handle));
}

bool set_arguments(OpenClDevice& cl, const DeviceFunction& function,
                   const DeviceArgument* arguments, int num_arguments, int64_t first_tile) {
  const auto kernel = static_cast<Kernel>(function.handle);
  UInt place = 0;
  Int code = kSuccess;
  for (int i = 0; i < num_arguments && code == kSuccess; ++i) {
    const Memory memory = memory_of(arguments[i].buffer);
    code = cl.api.set_argument(kernel, place++, sizeof memory, &memory);
    if (code == kSuccess)
      code = cl.api.set_argument(kernel, place++, sizeof(int64_t), &arguments[i].offset);
  }
  if (code == kSuccess) code = cl.api.set_argument(kernel, place, sizeof first_tile, &first_tile);
  return succeeded(cl, code, "passing a kernel's arguments");
}

// OpenCL has no shared memory beside what the code declares.
bool launch(Device& device, const DeviceFunction& function, int64_t blocks,
            const DeviceArgument* arguments, int num_arguments, int64_t first_tile) {
  OpenClDevice& cl = opened(device);
  const auto kernel = static_cast<Kernel>(function.handle);
  if (!set_arguments(cl, function, arguments, num_arguments, first_tile)) return false;
  const size_t local = static_cast<size_t>(function.threads);
  const size_t global = static_cast<size_t>(blocks) * local;
  return succeeded(
      device, cl.api.launch(cl.queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr),
      "launching a kernel");
}

// --- Events ---

bool record(Device& device, DeviceEvent& event) {
  OpenClDevice& cl = opened(device);
  if (event.handle != 0) cl.api.release_event(reinterpret_cast<Event>(event.handle));
  event.handle = 0;
  Event marker = nullptr;
  if (!succeeded(device, cl.api.marker(cl.queue, 0, nullptr, &marker), "recording an event"))
    return false;
  event.handle = reinterpret_cast<uint64_t>(marker);
  return true;
}

bool elapsed(Device& device, const DeviceEvent& from, const DeviceEvent& to, double& seconds) {
  OpenClDevice& cl = opened(device);
  const Event both[] = {reinterpret_cast<Event>(from.handle), reinterpret_cast<Event>(to.handle)};
  if (!finished(device, cl.api.wait(2, both), "running kernels")) return false;
  uint64_t ends[2] = {};
  for (int i = 0; i < 2; ++i)
    if (!succeeded(device,
                   cl.api.profiling_info(both[i], kProfilingEnd, sizeof ends[i], &ends[i], nullptr),
                   "reading the time of an event"))
      return false;
  seconds = ends[1] > ends[0] ? static_cast<double>(ends[1] - ends[0]) * 1e-9 : 0;
  return true;
}

bool wait(Device& device, const DeviceEvent& event) {
  const auto waited = reinterpret_cast<Event>(event.handle);
  return finished(device, opened(device).api.wait(1, &waited), "running kernels");
}

Progress poll(Device& device, const DeviceEvent& event) {
  OpenClDevice& cl = opened(device);
  Int status = kComplete;
  // OpenCL may put off work in a queue for ever until the queue is flushed.
  Int code = cl.api.flush(cl.queue);
  if (code == kSuccess)
    code = cl.api.event_info(reinterpret_cast<Event>(event.handle), kExecutionStatus, sizeof status,
                             &status, nullptr);
  if (code == kSuccess && status > kComplete) return Progress::kUnderWay;
  return finished(device, code == kSuccess ? status : code, "running kernels") ? Progress::kDone
                                                                               : Progress::kFailed;
}

void release_event(Device& device, const DeviceEvent& event) {
  opened(device).api.release_event(reinterpret_cast<Event>(event.handle));
}

}  // namespace

const Driver kOpenClDriver = {count_devices, describe,     open_device,   close_device,
                              allocate,      free_buffer,  upload,        download,
                              copy,          zero,         synchronize,   load,
                              unload,        binary,       find_function, release_function,
                              launch,        record,       elapsed,       wait,
                              poll,          release_event};

}  // namespace hone::runtime
