// runtime/device/cuda_api.h - the part of CUDA's driver interface that the runtime uses, as
// functions of the driver that the system has. Names and values are those of NVIDIA's "CUDA Driver
// API", so neither its headers nor its toolkit are needed to build.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hone::runtime::cuda {

using Result = int;
using Ordinal = int;  // CUdevice
using Pointer = unsigned long long;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

// The first driver with all of these functions is that of CUDA 11.4.
inline constexpr int kOldestDriver = 11040;

enum ResultCode : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kContextDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,  // up to kLaunchFailed: other faults of kernels
  kLaunchFailed = 719,
};
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kClockRate = 13,
  kMultiprocessors = 16,
  kIntegrated = 18,
  kMemoryClockRate = 36,
  kMemoryBusWidth = 37,
  kL2Bytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedPerBlockOptIn = 97,
  kMaxBlocksPerMultiprocessor = 106,
};
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
};
enum PointerAttribute : int { kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9 };
inline constexpr unsigned kMemoryTypeHost = 1, kMemoryTypeDevice = 2;
enum JitOption : int { kJitErrorLog = 5, kJitErrorLogBytes = 6 };
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;

template <typename Type>
using FunctionOf = Type*;

struct Api {
  FunctionOf<Result(unsigned)> init;
  FunctionOf<Result(int*)> driver_version;
  FunctionOf<Result(Result, const char**)> error_name;
  FunctionOf<Result(Result, const char**)> error_text;
  FunctionOf<Result(int*)> device_count;
  FunctionOf<Result(Ordinal*, int)> device_get;
  FunctionOf<Result(char*, int, Ordinal)> device_name;
  FunctionOf<Result(int*, Attribute, Ordinal)> device_attribute;
  FunctionOf<Result(size_t*, Ordinal)> device_memory;
  FunctionOf<Result(Context*, Ordinal)> retain_context;
  FunctionOf<Result(Ordinal)> release_context;
  FunctionOf<Result(Context)> push_context;
  FunctionOf<Result(Context*)> pop_context;
  FunctionOf<Result(size_t*, size_t*)> memory_info;
  FunctionOf<Result(Pointer*, size_t)> allocate;
  FunctionOf<Result(Pointer)> free;
  FunctionOf<Result(Pointer, const void*, size_t, Stream)> to_device;
  FunctionOf<Result(void*, Pointer, size_t, Stream)> to_host;
  FunctionOf<Result(Pointer, Pointer, size_t, Stream)> copy;
  FunctionOf<Result(Pointer, unsigned char, size_t, Stream)> fill;
  FunctionOf<Result(void*, PointerAttribute, Pointer)> pointer_attribute;
  FunctionOf<Result(Stream*, unsigned)> create_stream;
  FunctionOf<Result(Stream)> destroy_stream;
  FunctionOf<Result(Stream)> synchronize;
  FunctionOf<Result(Event*, unsigned)> create_event;
  FunctionOf<Result(Event, Stream)> record_event;
  FunctionOf<Result(Event)> wait_event;
  FunctionOf<Result(Event)> query_event;
  FunctionOf<Result(Stream, Event, unsigned)> stream_wait_event;
  FunctionOf<Result(float*, Event, Event)> elapsed;
  FunctionOf<Result(Event)> destroy_event;
  FunctionOf<Result(Module*, const void*, unsigned, JitOption*, void**)> load_module;
  FunctionOf<Result(Module)> unload_module;
  FunctionOf<Result(Function*, Module, const char*)> function;
  FunctionOf<Result(int*, FunctionAttribute, Function)> function_attribute;
  FunctionOf<Result(Function, FunctionAttribute, int)> set_function_attribute;
  FunctionOf<Result(Function, size_t, size_t*, size_t*)> parameter_info;  // null before CUDA 12.4
  FunctionOf<Result(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                    Stream, void**, void**)>
      launch;
  FunctionOf<Result(Stream, int)> begin_capture;
  FunctionOf<Result(Stream, Graph*)> end_capture;
  FunctionOf<Result(GraphExec*, Graph, unsigned long long)> instantiate;
  FunctionOf<Result(GraphExec, Stream)> launch_graph;
  FunctionOf<Result(Graph)> destroy_graph;
  FunctionOf<Result(GraphExec)> destroy_graph_exec;
};

// Loads libcuda.so.1, which stays loaded, and initialises it. Returns false with the reason in
// `message`.
[[nodiscard]] bool load_api(Api& api, char* message);
// Returns the driver's name of an error, such as "CUDA_ERROR_INVALID_VALUE".
[[nodiscard]] const char* error_name(const Api& api, Result code);

}  // namespace hone::runtime::cuda
