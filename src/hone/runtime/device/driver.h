// runtime/device/driver.h - the functions that a kind of device implements, for device.cc
// only. Calls that do nothing (no bytes, no blocks) or exceed a buffer do not get here.
#pragma once

#include <dlfcn.h>
#include <sys/types.h>

#include "hone/runtime/device/device.h"

namespace hone::runtime {

struct Driver {
  int (*count)(char* message);
  bool (*describe)(int index, DeviceProperties& out, char* message);
  Device* (*open)(int index, char* message);
  void (*close)(Device& device);
  bool (*allocate)(Device& device, int64_t bytes, DeviceBuffer& out);
  void (*free)(Device& device, const DeviceBuffer& buffer);
  bool (*upload)(Device& device, const DeviceBuffer& to, int64_t offset, const void* from,
                 int64_t bytes);
  bool (*download)(Device& device, void* to, const DeviceBuffer& from, int64_t offset,
                   int64_t bytes);
  bool (*copy)(Device& device, const DeviceBuffer& to, int64_t to_offset, const DeviceBuffer& from,
               int64_t from_offset, int64_t bytes);
  bool (*zero)(Device& device, const DeviceBuffer& buffer, int64_t offset, int64_t bytes);
  bool (*synchronize)(Device& device);
  bool (*load)(Device& device, const CodeImage& code, DeviceModule& out);
  void (*unload)(Device& device, const DeviceModule& module);
  int64_t (*binary)(Device& device, const DeviceModule& module, void* to,
                    int64_t capacity);  // null where a kind has no such thing
  bool (*function)(Device& device, const DeviceModule& module, const char* name,
                   DeviceFunction& inout);  // threads and shared_bytes are set
  void (*release_function)(Device& device, const DeviceFunction& function);
  bool (*launch)(Device& device, const DeviceFunction& function, int64_t blocks,
                 const DeviceArgument* arguments, int num_arguments, int64_t first_tile);
  bool (*record)(Device& device, DeviceEvent& event);
  bool (*elapsed)(Device& device, const DeviceEvent& from, const DeviceEvent& to, double& seconds);
  bool (*wait)(Device& device, const DeviceEvent& event);
  void (*release_event)(Device& device, const DeviceEvent& event);
  // Null where a kind has no such thing.
  bool (*begin_graph)(Device& device);
  bool (*end_graph)(Device& device, DeviceGraph& out);
  bool (*launch_graph)(Device& device, const DeviceGraph& graph);
  void (*release_graph)(Device& device, const DeviceGraph& graph);
  void (*use_stream)(Device& device, bool own, void* stream);
  bool (*wait_in_stream)(Device& device, const DeviceEvent& event);
  bool (*check_pointer)(Device& device, const void* pointer);
  bool (*check_host_pointer)(Device& device, const void* pointer);
};

extern const Driver kOpenClDriver;
extern const Driver kCudaDriver;

// The part that all kinds have; each has a struct that begins with it.
class Device {
 public:
  const Driver* driver = nullptr;
  DeviceProperties properties;
  pid_t process = 0;  // that opened it
  bool lost = false;
  int64_t allocated = 0, peak = 0;
  char error[kDeviceErrorBytes] = "";
};

// Writes a message of at most kDeviceErrorBytes.
__attribute__((format(printf, 2, 3))) void say_device(char* message, const char* format, ...);
// Stores the message and returns false.
__attribute__((format(printf, 2, 3))) bool fail_device(Device& device, const char* format, ...);

// Finds a function of a library that dlopen() returned.
template <typename F>
bool find_symbol(void* library, const char* name, F& function) {
  void* symbol = dlsym(library, name);
  __builtin_memcpy(&function, &symbol, sizeof function);
  return symbol != nullptr;
}

}  // namespace hone::runtime
