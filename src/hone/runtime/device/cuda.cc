// Devices of CUDA by its driver interface: the device's primary context, which all of a process
// share, and a stream of its own for each Device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "hone/runtime/device/cuda_device.h"

namespace hone::runtime {
namespace cuda {
namespace {

// Errors after which the driver refuses everything in this process.
bool is_sticky(Result code) {
  return code == kEccUncorrectable || code == kIllegalAddress || code == kLaunchTimeout ||
         code == kContextDestroyed || code == kAssert ||
         (code >= kHardwareStackError && code <= kLaunchFailed);
}

}  // namespace

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

namespace {

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
}  // namespace cuda

using namespace cuda;  // NOLINT: the table is one of all kinds

const Driver kCudaDriver = {count_devices, describe,
                            open_device,   close_device,
                            allocate,      free_buffer,
                            upload,        download,
                            copy,          zero,
                            synchronize,   load,
                            unload,        nullptr,
                            find_function, release_function,
                            launch,        record,
                            elapsed,       wait,
                            poll,          release_event,
                            begin_graph,   end_graph,
                            launch_graph,  release_graph,
                            use_stream,    wait_in_stream,
                            check_pointer, check_host_pointer};

}  // namespace hone::runtime
