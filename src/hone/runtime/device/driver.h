// runtime/device/driver.h - the functions that a kind of device implements, for device.cc
// only. Calls that do nothing (no bytes, no blocks) or exceed a buffer do not get here.
#pragma once

#include <dlfcn.h>
#include <sys/types.h>

#include "hone/runtime/device/device.h"

namespace hone::runtime {

enum class Progress { kDone, kUnderWay, kFailed };

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
  Progress (*poll)(Device& device, const DeviceEvent& event);  // the event was recorded
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

// The state of a device for the watchdog (watchdog.cc).
struct Watch {
  int64_t limit_ns = 0, deadline_ns = 0;  // 0: no limit
  int64_t launches = 0;  // since the stream was last seen to be empty; -1 while a graph is recorded
  DeviceEvent end;       // the end of the stream, when it is waited for
};

// The part that all kinds have; each has a struct that begins with it.
class Device {
 public:
  const Driver* driver = nullptr;     // that of its kind, until it hangs
  const Driver* opened_by = nullptr;  // that of its kind
  DeviceProperties properties;
  int index = 0;
  pid_t process = 0;  // that opened it
  bool lost = false, hangs = false;
  Watch watch;
  int64_t allocated = 0, peak = 0;
  char error[kDeviceErrorBytes] = "";
};

// Writes a message of at most kDeviceErrorBytes.
__attribute__((format(printf, 2, 3))) void say_device(char* message, const char* format, ...);
// Stores the message and returns false.
__attribute__((format(printf, 2, 3))) bool fail_device(Device& device, const char* format, ...);

// Waits for an event within the time. Returns false after a failure, and if the device hangs.
[[nodiscard]] bool await(Device& device, const DeviceEvent& event);
// Waits for the stream within the time, if there is a limit and launches are in the stream.
[[nodiscard]] bool await_launches(Device& device);
// Counts what is put into the stream to be run.
void count_launch(Device& device);
// Returns whether a device of this process hung.
[[nodiscard]] bool has_hung(DeviceKind kind, int index);

// Finds a function of a library that dlopen() returned.
template <typename F>
bool find_symbol(void* library, const char* name, F& function) {
  void* symbol = dlsym(library, name);
  __builtin_memcpy(&function, &symbol, sizeof function);
  return symbol != nullptr;
}

}  // namespace hone::runtime
