// runtime/device/device.h - devices that run kernels beside the CPU: GPUs by CUDA, and whatever
// OpenCL offers. The drivers are loaded at run time (libcuda.so.1, libOpenCL.so.1), so nothing
// links them. Like all of the runtime this needs libc only.
//
// A Device has one stream, and what is put there runs in that order: copies, kernels, events. Any
// number of devices may be open at once, also several for one piece of hardware, each used by one
// thread at a time. A function that returns bool returns false after a failure, and device_error()
// then says why in one message. A child of fork() must not use what its parent opened.
#pragma once

#include <stdint.h>

#include "hone/runtime/device/code.h"
#include "hone/runtime/device/device_properties.h"

namespace hone::runtime {

inline constexpr int kDeviceErrorBytes = 4096;  // the size of every `message`
inline constexpr int kMaxDeviceArguments = 128;

// Returns the number of devices of a kind. If it is 0, `message` says what is missing. With OpenCL,
// devices that are not CPUs come first.
[[nodiscard]] int device_count(DeviceKind kind, char* message);
// Describes a device without opening it: what detection needs. Returns false if there is none.
[[nodiscard]] bool device_describe(DeviceKind kind, int index, DeviceProperties& out,
                                   char* message);
// Returns the index of the first device with this text in the name of its platform or its own, or
// -1 with the reason in `message`. The empty text is in every name.
[[nodiscard]] int device_find(DeviceKind kind, const char* name, char* message);

class Device;  // opaque type
// Returns null after a failure, with the reason in `message`.
[[nodiscard]] Device* device_open(DeviceKind kind, int index, char* message);
// Closes a device, of which all else was freed before. Accepts null.
void device_close(Device* device);
[[nodiscard]] const DeviceProperties& device_properties(const Device& device);
// Returns the last failure; for code that cannot be built, with the compiler's messages.
[[nodiscard]] const char* device_error(const Device& device);
// Returns whether an error has occurred after which this process cannot use the device any more,
// such as an access to an address that is not there.
[[nodiscard]] bool device_lost(const Device& device);

// Memory of a device.
struct DeviceBuffer {
  uint64_t handle = 0;  // a pointer of CUDA, a cl_mem of OpenCL; 0 for none
  int64_t bytes = 0;
};
[[nodiscard]] bool device_allocate(Device& device, int64_t bytes, DeviceBuffer& out);
void device_free(Device& device, DeviceBuffer& buffer);
[[nodiscard]] int64_t device_allocated(const Device& device);  // bytes
[[nodiscard]] int64_t device_peak(const Device& device);       // the most bytes so far

// Copies. They may run after the call has returned, up to the next device_synchronize(): host
// memory must stay as it is until then.
[[nodiscard]] bool device_upload(Device& device, const DeviceBuffer& to, int64_t offset,
                                 const void* from, int64_t bytes);
[[nodiscard]] bool device_download(Device& device, void* to, const DeviceBuffer& from,
                                   int64_t offset, int64_t bytes);
[[nodiscard]] bool device_copy(Device& device, const DeviceBuffer& to, int64_t to_offset,
                               const DeviceBuffer& from, int64_t from_offset, int64_t bytes);
[[nodiscard]] bool device_zero(Device& device, const DeviceBuffer& buffer, int64_t offset,
                               int64_t bytes);
// Waits until all that was put into the stream is done.
[[nodiscard]] bool device_synchronize(Device& device);

// Code that was loaded, and a kernel in it. A kernel's parameters are, with OpenCL, for each buffer
// `__global char* p, ulong offset`, then `long first_tile`; with CUDA `char*` for each, then
// `long long first_tile`.
struct DeviceModule {
  void* handle = nullptr;
};
struct DeviceFunction {
  void* handle = nullptr;
  int threads = 1;           // threads of a block
  int64_t shared_bytes = 0;  // shared memory that a launch asks for, beside what the code declares
  int num_parameters = -1;   // parameters of the code; -1 where the driver does not say
  int registers = 0;         // registers of a thread, and bytes that did not fit into them; 0 where
  int64_t local_bytes = 0;   // the driver does not say
};
// Builds a program of OpenCL or loads a binary of CUDA.
[[nodiscard]] bool device_load(Device& device, const CodeImage& code, DeviceModule& out);
// Loads the best image of a container (code_choose()). If the driver does not take a binary of
// OpenCL, the source beside it is built.
[[nodiscard]] bool device_load_best(Device& device, const void* container, DeviceModule& out);
void device_unload(Device& device, DeviceModule& module);
// OpenCL only. Copies the binary of a program, which other processes can load on a device of the
// same name and driver, if it fits. Returns its size in bytes, or -1 after a failure.
[[nodiscard]] int64_t device_binary(Device& device, const DeviceModule& module, void* to,
                                    int64_t capacity);
// Finds a kernel and checks that the device can run blocks of this size.
[[nodiscard]] bool device_function(Device& device, const DeviceModule& module, const char* name,
                                   int threads, int64_t shared_bytes, DeviceFunction& out);
void device_release(Device& device, DeviceFunction& function);

// Checks that the code of a kernel has the parameters for so many arguments.
[[nodiscard]] bool device_check_arguments(Device& device, const DeviceFunction& function,
                                          int num_arguments);

struct DeviceArgument {
  uint64_t buffer = 0;  // DeviceBuffer::handle
  int64_t offset = 0;   // in bytes
};
// Runs the blocks first_tile <= b < first_tile + blocks.
[[nodiscard]] bool device_launch(Device& device, const DeviceFunction& function, int64_t blocks,
                                 const DeviceArgument* arguments, int num_arguments,
                                 int64_t first_tile = 0);

// A moment in the stream.
struct DeviceEvent {
  uint64_t handle = 0;
};
// Puts the event into the stream, at first or again.
[[nodiscard]] bool device_record(Device& device, DeviceEvent& event);
// Waits for both events and measures the time between them on the device's clock.
[[nodiscard]] bool device_elapsed(Device& device, const DeviceEvent& from, const DeviceEvent& to,
                                  double& seconds);
[[nodiscard]] bool device_wait(Device& device, const DeviceEvent& event);
// CUDA only. Later work in the stream runs after the event, which may be in another stream.
[[nodiscard]] bool device_wait_in_stream(Device& device, const DeviceEvent& event);
void device_release(Device& device, DeviceEvent& event);

// A watchdog. From this call on the device has `limit_ns` for all that is waited for; 0, as at
// first: any time. What is not done by then is not waited for any more, and the device hangs: all
// functions but device_has_happened() fail or do nothing, and no device of this kind and index can
// be opened again by the loaded library that this is part of. What a device that hangs holds is
// never freed, since its kernels may still run; nor may the host's memory be freed that is copied
// from or to.
void device_start_timer(Device& device, int64_t limit_ns);
// Returns false if an event has not happened and the time is over: then the device hangs.
[[nodiscard]] bool device_is_in_time(Device& device, const DeviceEvent& event);
// Waits, if there is a limit and much was launched: calls do not return while the queue of a driver
// is full.
[[nodiscard]] bool device_keep_up(Device& device);
[[nodiscard]] bool device_hangs(const Device& device);
// Returns whether an event has happened, also of a device that hangs.
[[nodiscard]] bool device_has_happened(Device& device, const DeviceEvent& event);
// The time limit of runs in Hone's own programs, in nanoseconds: far more than any run takes.
inline constexpr int64_t kAmpleNs = 300'000'000'000;

// CUDA only. What is put into the stream between begin and end is not run but recorded as a graph,
// which costs the CPU little to launch. Nothing is waited for in between.
struct DeviceGraph {
  void* handle = nullptr;
};
[[nodiscard]] bool device_begin_graph(Device& device);
[[nodiscard]] bool device_end_graph(Device& device, DeviceGraph& out);
[[nodiscard]] bool device_launch_graph(Device& device, const DeviceGraph& graph);
void device_release(Device& device, DeviceGraph& graph);

// CUDA only. Later work goes into the caller's stream, where null is CUDA's default stream, until
// device_use_own_stream().
[[nodiscard]] bool device_use_stream(Device& device, void* stream);
void device_use_own_stream(Device& device);
// CUDA only. Checks that the pointer is to memory of this device; the error says what it is to.
[[nodiscard]] bool device_check_pointer(Device& device, const void* pointer);
// Checks that the host can read where the pointer is to; the error says what is expected.
[[nodiscard]] bool device_check_host_pointer(Device& device, const void* pointer);

}  // namespace hone::runtime
