#include "hone/runtime/device/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hone/runtime/device/driver.h"

namespace hone::runtime {
namespace {

const Driver* driver_of(DeviceKind kind, char* message) {
  switch (kind) {
    case DeviceKind::kOpenCl: return &kOpenClDriver;
    case DeviceKind::kCuda: return &kCudaDriver;
    case DeviceKind::kNone: break;
  }
  say_device(message, "there is no kind of device with number %d", static_cast<int>(kind));
  return nullptr;
}

bool range_fits(Device& device, const DeviceBuffer& buffer, int64_t offset, int64_t bytes) {
  if (offset >= 0 && bytes >= 0 && offset <= buffer.bytes && bytes <= buffer.bytes - offset)
    return true;
  return fail_device(device, "%lld bytes at %lld exceed a buffer of %lld bytes",
                     static_cast<long long>(bytes), static_cast<long long>(offset),
                     static_cast<long long>(buffer.bytes));
}

bool needs_cuda(Device& device, const char* what) {
  return fail_device(device, "%s needs a device of CUDA, this one is of OpenCL", what);
}

}  // namespace

void say_device(char* message, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(message, kDeviceErrorBytes, format, args);
  va_end(args);
}

bool fail_device(Device& device, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(device.error, kDeviceErrorBytes, format, args);
  va_end(args);
  return false;
}

int device_count(DeviceKind kind, char* message) {
  message[0] = '\0';
  const Driver* driver = driver_of(kind, message);
  return driver == nullptr ? 0 : driver->count(message);
}

bool device_describe(DeviceKind kind, int index, DeviceProperties& out, char* message) {
  message[0] = '\0';
  const Driver* driver = driver_of(kind, message);
  return driver != nullptr && driver->describe(index, out, message);
}

int device_find(DeviceKind kind, const char* name, char* message) {
  const int count = device_count(kind, message);
  for (int i = 0; i < count; ++i) {
    DeviceProperties found;
    if (!device_describe(kind, i, found, message)) return -1;
    if (strstr(found.name, name) != nullptr || strstr(found.platform, name) != nullptr) return i;
  }
  if (count > 0) {
    DeviceProperties first;
    const bool described = device_describe(kind, 0, first, message);
    say_device(message, "none of the %d devices of %s is named '%.128s'%s%s", count,
               kind == DeviceKind::kCuda ? "CUDA" : "OpenCL", name,
               described ? "; the first is " : "", described ? first.name : "");
  }
  return -1;
}

Device* device_open(DeviceKind kind, int index, char* message) {
  message[0] = '\0';
  const Driver* driver = driver_of(kind, message);
  if (driver != nullptr && has_hung(kind, index)) {
    say_device(message, "device %d of %s is lost to this process: a kernel did not end there",
               index, kind == DeviceKind::kCuda ? "CUDA" : "OpenCL");
    return nullptr;
  }
  Device* device = driver == nullptr ? nullptr : driver->open(index, message);
  if (device != nullptr) {
    device->driver = device->opened_by = driver;
    device->index = index;
    device->process = getpid();
  }
  return device;
}

void device_close(Device* device) {
  if (device == nullptr) return;
  // The driver's threads and its state are those of the process that opened it.
  if (device->process == getpid()) {
    device_release(*device, device->watch.end);
    device->driver->close(*device);
  }
  free(device);
}

const DeviceProperties& device_properties(const Device& device) { return device.properties; }
const char* device_error(const Device& device) { return device.error; }
bool device_lost(const Device& device) { return device.lost; }
int64_t device_allocated(const Device& device) { return device.allocated; }
int64_t device_peak(const Device& device) { return device.peak; }

bool device_allocate(Device& device, int64_t bytes, DeviceBuffer& out) {
  out = {};
  const DeviceProperties& is = device.properties;
  if (is.max_buffer_bytes > 0 && bytes > is.max_buffer_bytes)
    return fail_device(device, "%s has no buffers of %lld bytes: the largest has %lld", is.name,
                       static_cast<long long>(bytes), static_cast<long long>(is.max_buffer_bytes));
  if (!device.driver->allocate(device, bytes > 0 ? bytes : 1, out)) return false;
  out.bytes = bytes;
  device.allocated += bytes;
  if (device.allocated > device.peak) device.peak = device.allocated;
  return true;
}

void device_free(Device& device, DeviceBuffer& buffer) {
  if (buffer.handle == 0) return;
  device.driver->free(device, buffer);
  device.allocated -= buffer.bytes;
  buffer = {};
}

bool device_upload(Device& device, const DeviceBuffer& to, int64_t offset, const void* from,
                   int64_t bytes) {
  if (!range_fits(device, to, offset, bytes)) return false;
  // Drivers let a copy from and to the host wait for the stream.
  return bytes == 0 ||
         (await_launches(device) && device.driver->upload(device, to, offset, from, bytes));
}

bool device_download(Device& device, void* to, const DeviceBuffer& from, int64_t offset,
                     int64_t bytes) {
  if (!range_fits(device, from, offset, bytes)) return false;
  return bytes == 0 ||
         (await_launches(device) && device.driver->download(device, to, from, offset, bytes));
}

bool device_copy(Device& device, const DeviceBuffer& to, int64_t to_offset,
                 const DeviceBuffer& from, int64_t from_offset, int64_t bytes) {
  if (!range_fits(device, to, to_offset, bytes) || !range_fits(device, from, from_offset, bytes))
    return false;
  return bytes == 0 || device.driver->copy(device, to, to_offset, from, from_offset, bytes);
}

bool device_zero(Device& device, const DeviceBuffer& buffer, int64_t offset, int64_t bytes) {
  if (!range_fits(device, buffer, offset, bytes)) return false;
  return bytes == 0 || device.driver->zero(device, buffer, offset, bytes);
}

bool device_synchronize(Device& device) {
  count_launch(device);  // whatever was put there
  return await_launches(device) && device.driver->synchronize(device);
}

bool device_load(Device& device, const CodeImage& code, DeviceModule& out) {
  out = {};
  return device.driver->load(device, code, out);
}

bool device_load_best(Device& device, const void* container, DeviceModule& out) {
  CodeImage image;
  char message[kCodeMessageBytes];
  if (!code_choose(container, device.properties, image, message))
    return fail_device(device, "%s", message);
  if (device_load(device, image, out)) return true;
  return image.format == CodeFormat::kOpenClBinary && code_source(container, image) &&
         device_load(device, image, out);
}

int64_t device_binary(Device& device, const DeviceModule& module, void* to, int64_t capacity) {
  if (device.driver->binary != nullptr) return device.driver->binary(device, module, to, capacity);
  fail_device(device, "code of %s has no binary beside what was loaded", device.properties.name);
  return -1;
}

void device_unload(Device& device, DeviceModule& module) {
  if (module.handle != nullptr) device.driver->unload(device, module);
  module = {};
}

bool device_function(Device& device, const DeviceModule& module, const char* name, int threads,
                     int64_t shared_bytes, DeviceFunction& out) {
  out = {};
  const DeviceProperties& is = device.properties;
  if (threads < 1 || threads > is.max_block_threads)
    return fail_device(device, "kernel %s has blocks of %d threads, %s runs at most %d", name,
                       threads, is.name, is.max_block_threads);
  if (shared_bytes < 0 || shared_bytes > is.block_shared_bytes)
    return fail_device(device, "kernel %s needs %lld bytes of shared memory, %s has %lld", name,
                       static_cast<long long>(shared_bytes), is.name,
                       static_cast<long long>(is.block_shared_bytes));
  DeviceFunction function;
  function.threads = threads;
  function.shared_bytes = shared_bytes;
  if (!device.driver->function(device, module, name, function)) return false;
  out = function;
  return true;
}

void device_release(Device& device, DeviceFunction& function) {
  if (function.handle != nullptr) device.driver->release_function(device, function);
  function = {};
}

bool device_check_arguments(Device& device, const DeviceFunction& function, int num_arguments) {
  if (num_arguments > kMaxDeviceArguments)
    return fail_device(device, "a kernel has %d arguments, at most %d are possible", num_arguments,
                       kMaxDeviceArguments);
  const int each = device.properties.kind == DeviceKind::kOpenCl ? 2 : 1;
  const int expected = each * num_arguments + 1;
  if (function.num_parameters < 0 || function.num_parameters == expected) return true;
  return fail_device(device, "a kernel has %d parameters, expected %d for its %d arguments",
                     function.num_parameters, expected, num_arguments);
}

bool device_launch(Device& device, const DeviceFunction& function, int64_t blocks,
                   const DeviceArgument* arguments, int num_arguments, int64_t first_tile) {
  if (!device_check_arguments(device, function, num_arguments)) return false;
  if (blocks > INT64_MAX / function.threads)
    return fail_device(device, "%lld blocks of %d threads are too many for a launch",
                       static_cast<long long>(blocks), function.threads);
  if (blocks <= 0) return true;
  count_launch(device);
  return device.driver->launch(device, function, blocks, arguments, num_arguments, first_tile);
}

bool device_record(Device& device, DeviceEvent& event) {
  count_launch(device);
  return device.driver->record(device, event);
}

bool device_elapsed(Device& device, const DeviceEvent& from, const DeviceEvent& to,
                    double& seconds) {
  if (from.handle == 0 || to.handle == 0)
    return fail_device(device, "an event is measured that was not recorded");
  return await(device, to) && device.driver->elapsed(device, from, to, seconds);
}

bool device_wait(Device& device, const DeviceEvent& event) {
  return event.handle == 0 || (await(device, event) && device.driver->wait(device, event));
}

bool device_wait_in_stream(Device& device, const DeviceEvent& event) {
  if (device.driver->wait_in_stream == nullptr) return needs_cuda(device, "the stream of a caller");
  return event.handle == 0 || device.driver->wait_in_stream(device, event);
}

void device_release(Device& device, DeviceEvent& event) {
  if (event.handle != 0) device.driver->release_event(device, event);
  event = {};
}

bool device_begin_graph(Device& device) {
  if (device.driver->begin_graph == nullptr) return needs_cuda(device, "a graph");
  const bool begun = device.driver->begin_graph(device);
  if (begun) device.watch.launches = -1;
  return begun;
}

bool device_end_graph(Device& device, DeviceGraph& out) {
  out = {};
  if (device.driver->end_graph == nullptr) return needs_cuda(device, "a graph");
  device.watch.launches = 1;  // those that were there before
  return device.driver->end_graph(device, out);
}

bool device_launch_graph(Device& device, const DeviceGraph& graph) {
  if (device.driver->launch_graph == nullptr) return needs_cuda(device, "a graph");
  count_launch(device);
  return device.driver->launch_graph(device, graph);
}

void device_release(Device& device, DeviceGraph& graph) {
  if (graph.handle != nullptr) device.driver->release_graph(device, graph);
  graph = {};
}

bool device_use_stream(Device& device, void* stream) {
  if (device.driver->use_stream == nullptr) return needs_cuda(device, "the stream of a caller");
  device.driver->use_stream(device, false, stream);
  if (device.watch.launches == 0) device.watch.launches = 1;  // whatever the caller put there
  return true;
}

void device_use_own_stream(Device& device) {
  if (device.driver->use_stream != nullptr) device.driver->use_stream(device, true, nullptr);
}

bool device_check_pointer(Device& device, const void* pointer) {
  if (device.driver->check_pointer == nullptr) return needs_cuda(device, "a pointer to its memory");
  return device.driver->check_pointer(device, pointer);
}

bool device_check_host_pointer(Device& device, const void* pointer) {
  const Driver& driver = *device.driver;
  return driver.check_host_pointer == nullptr || driver.check_host_pointer(device, pointer);
}

}  // namespace hone::runtime
