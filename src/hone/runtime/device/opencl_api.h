// runtime/device/opencl_api.h - the part of OpenCL 1.2 that the runtime uses, as functions of the
// library that the system has. Names and values are those of the specification (Khronos, "The
// OpenCL Specification", version 1.2), so no headers of it are needed to build.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hone::runtime::opencl {

using Int = int32_t;
using UInt = uint32_t;
using Bits = uint64_t;  // cl_bitfield
using Platform = struct PlatformTag*;
using DeviceId = struct DeviceTag*;
using Context = struct ContextTag*;
using Queue = struct QueueTag*;
using Memory = struct MemoryTag*;
using Program = struct ProgramTag*;
using Kernel = struct KernelTag*;
using Event = struct EventTag*;

inline constexpr Int kSuccess = 0, kDeviceNotFound = -1, kMemoryFailure = -4, kOutOfResources = -5,
                     kOutOfHostMemory = -6, kInvalidBufferSize = -61;
inline constexpr Bits kTypeCpu = 1 << 1, kTypeAll = 0xFFFFFFFF;
inline constexpr Bits kProfiling = 1 << 1, kReadWrite = 1 << 0;
enum PlatformInfo : UInt { kPlatformName = 0x0902 };
enum DeviceInfo : UInt {
  kType = 0x1000,
  kComputeUnits = 0x1002,
  kMaxGroupSize = 0x1004,
  kClockMhz = 0x100C,
  kMaxAllocation = 0x1010,
  kCacheBytes = 0x101E,
  kMemoryBytes = 0x101F,
  kLocalBytes = 0x1023,
  kAvailable = 0x1027,
  kCompilerAvailable = 0x1028,
  kName = 0x102B,
  kDriverVersion = 0x102D,
  kExtensions = 0x1030,
  kUnifiedMemory = 0x1035,
};
enum ProgramInfo : UInt { kBinarySizes = 0x1165, kBinaries = 0x1166, kBuildLog = 0x1183 };
enum KernelInfo : UInt { kNumArgs = 0x1191, kGroupSize = 0x11B0, kKernelLocalBytes = 0x11B2 };
enum KernelGroupInfo : UInt { kGroupMultiple = 0x11B3 };
enum EventInfo : UInt { kExecutionStatus = 0x11D3, kProfilingEnd = 0x1283 };
inline constexpr Int kComplete = 0;  // a kExecutionStatus; less is a failure

template <typename Type>
using FunctionOf = Type*;

struct Api {
  FunctionOf<Int(UInt, Platform*, UInt*)> get_platforms;
  FunctionOf<Int(Platform, UInt, size_t, void*, size_t*)> platform_info;
  FunctionOf<Int(Platform, Bits, UInt, DeviceId*, UInt*)> get_devices;
  FunctionOf<Int(DeviceId, UInt, size_t, void*, size_t*)> device_info;
  FunctionOf<Context(const intptr_t*, UInt, const DeviceId*,
                     void (*)(const char*, const void*, size_t, void*), void*, Int*)>
      create_context;
  FunctionOf<Int(Context)> release_context;
  FunctionOf<Queue(Context, DeviceId, Bits, Int*)> create_queue;
  FunctionOf<Int(Queue)> release_queue;
  FunctionOf<Memory(Context, Bits, size_t, void*, Int*)> create_buffer;
  FunctionOf<Int(Memory)> release_memory;
  FunctionOf<Int(Queue, Memory, UInt, size_t, size_t, const void*, UInt, const Event*, Event*)>
      write;
  FunctionOf<Int(Queue, Memory, UInt, size_t, size_t, void*, UInt, const Event*, Event*)> read;
  FunctionOf<Int(Queue, Memory, Memory, size_t, size_t, size_t, UInt, const Event*, Event*)> copy;
  FunctionOf<Int(Queue, Memory, const void*, size_t, size_t, size_t, UInt, const Event*, Event*)>
      fill;
  FunctionOf<Int(Queue)> finish;
  FunctionOf<Int(Queue)> flush;
  FunctionOf<Program(Context, UInt, const char**, const size_t*, Int*)> program_of_source;
  FunctionOf<Program(Context, UInt, const DeviceId*, const size_t*, const unsigned char**, Int*,
                     Int*)>
      program_of_binary;
  FunctionOf<Int(Program, UInt, const DeviceId*, const char*, void (*)(Program, void*), void*)>
      build;
  FunctionOf<Int(Program, DeviceId, UInt, size_t, void*, size_t*)> build_info;
  FunctionOf<Int(Program, UInt, size_t, void*, size_t*)> program_info;
  FunctionOf<Int(Program)> release_program;
  FunctionOf<Kernel(Program, const char*, Int*)> create_kernel;
  FunctionOf<Int(Kernel)> release_kernel;
  FunctionOf<Int(Kernel, UInt, size_t, const void*)> set_argument;
  FunctionOf<Int(Kernel, UInt, size_t, void*, size_t*)> kernel_info;
  FunctionOf<Int(Kernel, DeviceId, UInt, size_t, void*, size_t*)> kernel_group_info;
  FunctionOf<Int(Queue, Kernel, UInt, const size_t*, const size_t*, const size_t*, UInt,
                 const Event*, Event*)>
      launch;
  FunctionOf<Int(Queue, UInt, const Event*, Event*)> marker;
  FunctionOf<Int(UInt, const Event*)> wait;
  FunctionOf<Int(Event, UInt, size_t, void*, size_t*)> profiling_info;
  FunctionOf<Int(Event, UInt, size_t, void*, size_t*)> event_info;
  FunctionOf<Int(Event)> release_event;
};

// Loads libOpenCL.so.1, which stays loaded. Returns false with the reason in `message`.
[[nodiscard]] bool load_api(Api& api, char* message);
// Returns the specification's name of an error, such as "CL_INVALID_VALUE", or "error".
[[nodiscard]] const char* error_name(Int code);

}  // namespace hone::runtime::opencl
