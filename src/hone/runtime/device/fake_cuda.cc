// A driver of CUDA for tests on machines without one, which they load as libcuda.so.1. It has one
// device, whose memory is the host's and whose kernels are those below; a module has those that its
// PTX names. What is put into a stream runs when the stream is waited for, never before, so that
// code which does not wait is seen. Calls without a current context are errors, as with the real
// driver. The functions that it has are those of runtime/device/cuda_api.cc.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hone/runtime/device/cuda_api.h"

namespace hone::runtime::cuda {

using Work = std::function<void()>;
using Clock = std::chrono::steady_clock;

// The types that the interface only names.
struct ContextTag {};
struct StreamTag {
  std::deque<Work> work;
  int64_t begun = 0, put = 0;  // of all work so far
  GraphTag* recorded = nullptr;
};
struct EventTag {
  StreamTag* stream = nullptr;
  int64_t place = 0;  // of the work that records it
  Clock::time_point time;
};
struct FunctionTag {
  int num_parameters = 0;
  // Runs one thread of the tile's block.
  // Null: it never ends.
  void (*thread)(char* const* buffers, int64_t tile, int64_t thread, int64_t threads) = nullptr;
};
struct ModuleTag {
  std::map<std::string, FunctionTag> functions;
};
struct GraphTag {
  std::vector<Work> work;
};
struct GraphExecTag {
  std::vector<Work> work;
};

namespace {

constexpr size_t kMemory = 64 << 20, kOwnMemory = 1 << 20;
constexpr Result kInvalidContext = 201;
constexpr int64_t kElements = 1000;  // of the kernels but add
constexpr int64_t kQueue = 1024;     // the most launches of a stream that wait to run

std::recursive_mutex mutex;  // one call at a time
ContextTag context;
StreamTag default_stream;
std::map<std::thread::id, StreamTag> thread_streams;
std::deque<StreamTag> all_streams;
std::vector<Stream> unused_streams;  // destroyed; the next that are made get their handles
std::map<Pointer, size_t> allocations;
std::set<Stream> streams;  // made and not destroyed
thread_local std::vector<Context> current;
int graph_launches = 0;
int driver_version = 12040;
Result broken = kSuccess;  // what all calls that need a context return, if it is an error

float* floats(char* bytes) { return reinterpret_cast<float*>(bytes); }

const std::map<std::string, FunctionTag> kKernels = {
    {"add",
     {4,
      [](char* const* b, int64_t tile, int64_t thread, int64_t threads) {
        const int64_t i = tile * threads + thread;
        floats(b[2])[i] = floats(b[0])[i] + floats(b[1])[i];
      }}},
    {"scale",
     {4,
      [](char* const* b, int64_t tile, int64_t thread, int64_t threads) {
        const int64_t i = tile * threads + thread;
        if (i < kElements) floats(b[2])[i] = floats(b[0])[i] * floats(b[1])[i];
      }}},
    {"twice",
     {5,
      [](char* const* b, int64_t tile, int64_t thread, int64_t threads) {
        const int64_t i = tile * threads + thread;
        floats(b[1])[i] = 2 * floats(b[0])[i];
      }}},
    {"pad",
     {3,
      [](char* const* b, int64_t tile, int64_t thread, int64_t threads) {
        const int64_t i = tile * threads + thread;
        if (i < kElements) floats(b[1])[i + 1] = floats(b[0])[i];
      }}},
    {"hangs", {4}},
    {"filter", {4, [](char* const* b, int64_t tile, int64_t thread, int64_t threads) {
                  const int64_t i = tile * threads + thread;
                  const float *p = floats(b[0]), *w = floats(b[1]);
                  if (i < kElements)
                    floats(b[2])[i] = w[0] * p[i] + w[1] * p[i + 1] + w[2] * p[i + 2];
                }}}};

// Handles below this one stand for streams that nobody makes; 2 is one of each thread.
constexpr uintptr_t kFirstStream = 3;

bool is_stream(Stream stream) {
  return reinterpret_cast<uintptr_t>(stream) < kFirstStream || streams.contains(stream);
}

StreamTag& stream_of(Stream stream) {
  constexpr uintptr_t kPerThread = 2;
  if (reinterpret_cast<uintptr_t>(stream) == kPerThread)
    return thread_streams[std::this_thread::get_id()];
  return stream == nullptr ? default_stream : *stream;
}

// Runs the work of a stream up to this place in it.
void run_until(StreamTag& stream, int64_t place) {
  while (stream.begun < place) {
    while (!stream.work.front()) pause();  // never ends
    const Work work = std::move(stream.work.front());
    stream.work.pop_front();
    ++stream.begun;
    work();
  }
}

// Runs the work of a stream up to this place, or up to work that never ends. Returns whether it
// reached the place.
bool runs_until(StreamTag& stream, int64_t place) {
  while (stream.begun < place) {
    if (!stream.work.front()) return false;
    run_until(stream, stream.begun + 1);
  }
  return true;
}

void run_all(StreamTag& stream) { run_until(stream, stream.put); }

// Puts work into a stream, or into the graph that it records.
Result put(Stream stream, Work work) {
  if (!is_stream(stream)) return kInvalidHandle;
  StreamTag& into = stream_of(stream);
  if (into.recorded != nullptr) return into.recorded->work.push_back(std::move(work)), kSuccess;
  into.work.push_back(std::move(work));
  ++into.put;
  return kSuccess;
}

bool is_inside(Pointer pointer, size_t bytes) {
  auto after = allocations.upper_bound(pointer);
  if (after == allocations.begin()) return false;
  const auto& [start, size] = *--after;
  return pointer + bytes <= start + size;
}

char* address(Pointer pointer) { return reinterpret_cast<char*>(pointer); }

}  // namespace
}  // namespace hone::runtime::cuda

using namespace hone::runtime::cuda;  // NOLINT: the functions are those of C

// A call that needs a context, and the driver for itself.
#define ENTER                                               \
  const std::lock_guard<std::recursive_mutex> alone(mutex); \
  if (current.empty()) return kInvalidContext;              \
  if (broken != kSuccess) return broken

#pragma GCC visibility push(default)
extern "C" {

Result cuInit(unsigned) { return kSuccess; }
Result cuDriverGetVersion(int* version) { return *version = driver_version, kSuccess; }
Result cuGetErrorName(Result, const char** name) { return *name = "CUDA_ERROR_FAKE", kSuccess; }
Result cuGetErrorString(Result, const char** text) { return *text = "a fake error", kSuccess; }
Result cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
Result cuDeviceGet(Ordinal* ordinal, int index) { return *ordinal = index, kSuccess; }
Result cuDeviceGetName(char* name, int size, Ordinal) {
  return std::strncpy(name, "a fake GPU", static_cast<size_t>(size)), kSuccess;
}
Result cuDeviceTotalMem_v2(size_t* bytes, Ordinal) { return *bytes = kMemory, kSuccess; }
Result cuDeviceGetAttribute(int* value, Attribute which, Ordinal) {
  static const std::map<Attribute, int> values = {{kMaxThreadsPerBlock, 1024},
                                                  {kMaxSharedPerBlock, 48 << 10},
                                                  {kMaxSharedPerBlockOptIn, 160 << 10},
                                                  {kWarpSize, 32},
                                                  {kMultiprocessors, 4},
                                                  {kCapabilityMajor, 8},
                                                  {kMaxRegistersPerMultiprocessor, 64 << 10}};
  const auto found = values.find(which);
  return *value = found == values.end() ? 0 : found->second, kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context* out, Ordinal) { return *out = &context, kSuccess; }
Result cuDevicePrimaryCtxRelease_v2(Ordinal) { return kSuccess; }
Result cuCtxPushCurrent_v2(Context pushed) { return current.push_back(pushed), kSuccess; }
Result cuCtxPopCurrent_v2(Context* popped) {
  if (current.empty()) return kInvalidContext;
  *popped = current.back();
  current.pop_back();
  return kSuccess;
}

Result cuMemGetInfo_v2(size_t* unused, size_t* total) {
  ENTER;
  *total = kMemory;
  *unused = kMemory - kOwnMemory;
  for (const auto& [start, bytes] : allocations) *unused -= bytes;
  return kSuccess;
}
Result cuMemAlloc_v2(Pointer* out, size_t bytes) {
  ENTER;
  size_t unused = 0, total = 0;
  cuMemGetInfo_v2(&unused, &total);
  if (bytes > unused) return kOutOfMemory;
  void* memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(memory, 0xFF, bytes);  // not numbers
  *out = reinterpret_cast<Pointer>(memory);
  allocations[*out] = bytes;
  return kSuccess;
}
Result cuMemFree_v2(Pointer pointer) {
  ENTER;
  if (allocations.erase(pointer) == 0) return kInvalidValue;
  return std::free(address(pointer)), kSuccess;
}
Result cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, Stream stream) {
  ENTER;
  if (!is_inside(to, bytes)) return kInvalidValue;
  return put(stream, [=] { std::memcpy(address(to), from, bytes); });
}
Result cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, Stream stream) {
  ENTER;
  if (!is_inside(from, bytes)) return kInvalidValue;
  return put(stream, [=] { std::memcpy(to, address(from), bytes); });
}
Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, Stream stream) {
  ENTER;
  if (!is_inside(to, bytes) || !is_inside(from, bytes)) return kInvalidValue;
  return put(stream, [=] { std::memcpy(address(to), address(from), bytes); });
}
Result cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, Stream stream) {
  ENTER;
  if (!is_inside(to, bytes)) return kInvalidValue;
  return put(stream, [=] { std::memset(address(to), value, bytes); });
}
Result cuPointerGetAttribute(void* out, PointerAttribute which, Pointer pointer) {
  ENTER;
  if (!is_inside(pointer, 1)) return kInvalidValue;
  constexpr unsigned kDevice = 2;
  if (which == kMemoryType) return *static_cast<unsigned*>(out) = kDevice, kSuccess;
  return *static_cast<int*>(out) = 0, kSuccess;
}

Result cuStreamCreate(Stream* out, unsigned) {
  ENTER;
  if (unused_streams.empty()) unused_streams.push_back(&all_streams.emplace_back());
  *out = unused_streams.back();
  unused_streams.pop_back();
  streams.insert(*out);
  return kSuccess;
}
Result cuStreamSynchronize(Stream stream) {
  ENTER;
  if (!is_stream(stream)) return kInvalidHandle;
  if (stream_of(stream).recorded != nullptr) return kInvalidValue;
  return run_all(stream_of(stream)), kSuccess;
}
Result cuStreamDestroy_v2(Stream stream) {
  ENTER;
  if (streams.erase(stream) == 0) return kInvalidHandle;
  return unused_streams.push_back(stream), kSuccess;  // its work still runs
}
Result cuEventCreate(Event* out, unsigned) {
  ENTER;
  return *out = new EventTag, kSuccess;
}
Result cuEventRecord(Event event, Stream stream) {
  ENTER;
  const Result result = put(stream, [=] { event->time = Clock::now(); });
  if (result != kSuccess) return result;
  event->stream = &stream_of(stream);
  event->place = event->stream->put;
  return kSuccess;
}
Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  ENTER;
  if (event->stream == nullptr) return kSuccess;
  return put(stream, [from = event->stream, place = event->place] { run_until(*from, place); });
}
Result cuEventSynchronize(Event event) {
  ENTER;
  if (event->stream != nullptr) run_until(*event->stream, event->place);
  return kSuccess;
}
Result cuEventQuery(Event event) {
  ENTER;
  if (event->stream == nullptr || runs_until(*event->stream, event->place)) return kSuccess;
  return kNotReady;
}
Result cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  ENTER;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return kSuccess;
}
Result cuEventDestroy_v2(Event event) {
  ENTER;
  if (event->stream != nullptr) run_until(*event->stream, event->place);
  return delete event, kSuccess;
}

Result cuModuleLoadDataEx(Module* out, const void* image, unsigned, JitOption*, void**) {
  ENTER;
  const std::string text = static_cast<const char*>(image);
  auto* module = new ModuleTag;
  for (const auto& [name, function] : kKernels)
    if (text.find(".entry " + name + "(") != std::string::npos) module->functions[name] = function;
  if (!module->functions.empty()) return *out = module, kSuccess;
  delete module;
  return kInvalidImage;
}
Result cuModuleUnload(Module module) {
  ENTER;
  return delete module, kSuccess;
}
Result cuModuleGetFunction(Function* out, Module module, const char* name) {
  ENTER;
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  return *out = &found->second, kSuccess;
}
Result cuFuncGetAttribute(int* value, FunctionAttribute which, Function) {
  ENTER;
  return *value = which == kFunctionMaxThreads ? 1024 : 0, kSuccess;
}
Result cuFuncSetAttribute(Function, FunctionAttribute, int) {
  ENTER;
  return kSuccess;
}
Result cuFuncGetParamInfo(Function function, size_t index, size_t* offset, size_t* bytes) {
  ENTER;
  if (index >= static_cast<size_t>(function->num_parameters)) return kInvalidValue;
  *bytes = sizeof(Pointer);
  return *offset = index * sizeof(Pointer), kSuccess;
}
Result cuLaunchKernel(Function function, unsigned blocks, unsigned, unsigned, unsigned threads,
                      unsigned, unsigned, unsigned, Stream stream, void** parameters, void**) {
  ENTER;
  std::vector<char*> buffers;
  for (int i = 0; i + 1 < function->num_parameters; ++i) {
    const Pointer pointer = *static_cast<Pointer*>(parameters[i]);
    if (!is_inside(pointer, 1)) return kIllegalAddress;
    buffers.push_back(address(pointer));
  }
  const int64_t first = *static_cast<int64_t*>(parameters[function->num_parameters - 1]);
  const auto thread = function->thread;
  // A call waits while the queue is full.
  StreamTag& into = stream_of(stream);
  if (into.recorded == nullptr && into.put - into.begun >= kQueue)
    run_until(into, into.put - kQueue + 1);
  if (thread == nullptr) return put(stream, nullptr);
  return put(stream, [=] {
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t t = 0; t < threads; ++t) thread(buffers.data(), first + b, t, threads);
  });
}

Result cuStreamBeginCapture_v2(Stream stream, int) {
  ENTER;
  if (!streams.contains(stream)) return kInvalidHandle;
  if (stream->recorded != nullptr) return kInvalidValue;
  return stream->recorded = new GraphTag, kSuccess;
}
Result cuStreamEndCapture(Stream stream, Graph* out) {
  ENTER;
  if (!streams.contains(stream)) return kInvalidHandle;
  if (stream->recorded == nullptr) return kInvalidValue;
  *out = stream->recorded;
  stream->recorded = nullptr;
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExec* out, Graph graph, unsigned long long) {
  ENTER;
  return *out = new GraphExecTag{graph->work}, kSuccess;
}
Result cuGraphLaunch(GraphExec graph, Stream stream) {
  ENTER;
  ++graph_launches;
  Result result = kSuccess;
  for (const Work& one : graph->work) {
    if (result == kSuccess) result = put(stream, one);
  }
  return result;
}
Result cuGraphDestroy(Graph graph) {
  ENTER;
  return delete graph, kSuccess;
}
Result cuGraphExecDestroy(GraphExec graph) {
  ENTER;
  return delete graph, kSuccess;
}

// Not CUDA's: the number of graphs that were launched, for tests.
int fake_graph_launches() { return graph_launches; }
// Nor these: the version that the driver says it has, and the error, if any, of all calls.
void fake_set_driver_version(int version) { driver_version = version; }
void fake_break(int code) { broken = code; }

}  // extern "C"
#pragma GCC visibility pop
