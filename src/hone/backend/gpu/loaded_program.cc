#include "hone/backend/gpu/loaded_program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "hone/backend/cpu/cpu_backend.h"
#include "hone/backend/gpu/code_notes.h"
#include "hone/runtime/device/device.h"

namespace hone::backend::gpu {
namespace {

// A device of this process, which one thread uses at a time. It is never closed: what was loaded
// may live until the process ends.
struct SharedDevice {
  std::mutex mutex;
  runtime::Device* device = nullptr;

  // Under the lock.
  Status open(runtime::DeviceKind kind, const std::string& name) {
    if (device != nullptr) return ok_status();
    char message[runtime::kDeviceErrorBytes] = "";
    const int index = runtime::device_find(kind, name.c_str(), message);
    if (index >= 0) device = runtime::device_open(kind, index, message);
    return device != nullptr ? ok_status() : Status(Code::kNotFound, message);
  }
  Status check(bool good) const {
    if (good) return ok_status();
    return {runtime::device_hangs(*device) ? Code::kTimeout : Code::kInternal,
            runtime::device_error(*device)};
  }
};

SharedDevice& shared_device(runtime::DeviceKind kind, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::pair<runtime::DeviceKind, std::string>, SharedDevice> devices;
  const std::lock_guard lock(mutex);
  return devices[{kind, name}];
}

class LoadedProgram final : public LoadedExecutable {
 public:
  LoadedProgram(SharedDevice& shared, CodeNotes notes, LoadedPtr packing)
      : shared_(shared), notes_(std::move(notes)), packing_(std::move(packing)) {}
  ~LoadedProgram() override {
    const std::lock_guard lock(shared_.mutex);
    runtime::device_unload(*shared_.device, module_);
  }
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  Status load(const std::string& code) {
    const std::lock_guard lock(shared_.mutex);
    if (runtime::device_load_best(*shared_.device, code.data(), module_)) return ok_status();
    return {Code::kUnsupported, runtime::device_error(*shared_.device)};
  }

  // Threads that run parts of a phase take turns, each with what the others wrote.
  [[nodiscard]] Status run(const EntryPoint& entry, void* const* args, void* scratch,
                           int64_t first_tile, int64_t last_tile, int thread) const override {
    if (entry.prepare)
      return packing_ != nullptr
                 ? packing_->run(entry, args, scratch, first_tile, last_tile, thread)
                 : error(Code::kInternal, "the executable has no code that prepares constants");
    if (first_tile == last_tile) return ok_status();
    const std::lock_guard lock(shared_.mutex);
    std::vector<runtime::DeviceBuffer> buffers(notes_.params.size());
    runtime::device_start_timer(*shared_.device, runtime::kAmpleNs);
    Status status = run_on(entry, args, first_tile, last_tile, buffers);
    if (status.code() == Code::kTimeout)
      status = error(Code::kTimeout, "kernel {} did not end: {}", entry.symbol, status.message());
    for (runtime::DeviceBuffer& buffer : buffers) runtime::device_free(*shared_.device, buffer);
    return status;
  }

 private:
  Status run_on(const EntryPoint& entry, void* const* args, int64_t first_tile, int64_t last_tile,
                std::vector<runtime::DeviceBuffer>& buffers) const {
    runtime::Device& device = *shared_.device;
    std::vector<runtime::DeviceArgument> arguments;
    for (size_t i = 0; i < buffers.size(); ++i) {
      // A buffer without bytes, or without memory because nothing touches it, has a place all the
      // same.
      const int64_t bytes = args[i] != nullptr ? notes_.params[i].bytes : 0;
      HONE_RETURN_IF_ERROR(
          shared_.check(runtime::device_allocate(device, std::max<int64_t>(bytes, 1), buffers[i])));
      if (bytes > 0)
        HONE_RETURN_IF_ERROR(
            shared_.check(runtime::device_upload(device, buffers[i], 0, args[i], bytes)));
      arguments.push_back({buffers[i].handle, 0});
    }
    runtime::DeviceFunction function;
    HONE_RETURN_IF_ERROR(shared_.check(runtime::device_function(
        device, module_, entry.symbol.c_str(), entry.threads, entry.shared_bytes, function)));
    Status status = shared_.check(
        runtime::device_launch(device, function, last_tile - first_tile, arguments.data(),
                               static_cast<int>(arguments.size()), first_tile));
    for (size_t i = 0; status.ok() && i < buffers.size(); ++i) {
      const ParamNote& param = notes_.params[i];
      if (param.written && args[i] != nullptr && param.bytes > 0)
        status =
            shared_.check(runtime::device_download(device, args[i], buffers[i], 0, param.bytes));
    }
    // Copies run until here, so that buffers are freed only afterwards.
    const Status done = shared_.check(runtime::device_synchronize(device));
    runtime::device_release(device, function);
    return status.ok() ? done : status;
  }

  SharedDevice& shared_;
  CodeNotes notes_;
  LoadedPtr packing_;  // null if nothing is to be prepared
  runtime::DeviceModule module_;
};

}  // namespace

Result<LoadedPtr> load_program(const Executable& executable) {
  const std::string& code = executable.code.str();
  HONE_ASSIGN_OR_RETURN(CodeNotes notes, read_notes(code));
  LoadedPtr packing;
  if (!executable.prepare_code.empty()) {
    HONE_ASSIGN_OR_RETURN(packing, cpu::make_backend()->load(prepare_part(executable)));
  }
  runtime::CodeHeader header;
  std::memcpy(&header, code.data(), sizeof header);
  if (header.count == 0) return invalid("the code for devices has no image");
  const runtime::CodeFormat format = runtime::code_image(code.data(), 0).format;
  const bool opencl =
      format == runtime::CodeFormat::kOpenClSource || format == runtime::CodeFormat::kOpenClBinary;
  const runtime::DeviceKind kind =
      opencl ? runtime::DeviceKind::kOpenCl : runtime::DeviceKind::kCuda;
  SharedDevice& shared = shared_device(kind, notes.device);
  {
    const std::lock_guard lock(shared.mutex);
    HONE_RETURN_IF_ERROR(shared.open(kind, notes.device));
  }
  auto loaded = std::make_unique<LoadedProgram>(shared, std::move(notes), std::move(packing));
  HONE_RETURN_IF_ERROR(loaded->load(code));
  return LoadedPtr(std::move(loaded));
}

}  // namespace hone::backend::gpu
