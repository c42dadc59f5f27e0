#include "hone/backend/gpu/compile_opencl.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "hone/backend/device_code.h"
#include "hone/backend/gpu/code_notes.h"
#include "hone/backend/gpu/compile_pool.h"
#include "hone/base/log.h"
#include "hone/runtime/device/device.h"
#include "hone/target/gpu_devices.h"

namespace hone::backend::gpu {
namespace {

using runtime::Device;

constexpr int64_t kMostArguments = 1LL << 30;  // bytes of a kernel that is run for its binary

std::string encode(const OpenClProgram& p) {
  wire::Writer w;
  w.put(p.source).put(p.options).put(uint64_t{p.kernels.size()});
  for (const EntryPoint& k : p.kernels)
    w.put(k.symbol).put(k.num_tiles).put(k.threads).put(k.shared_bytes);
  w.put(uint64_t{p.param_bytes.size()});
  for (const int64_t bytes : p.param_bytes) w.put(bytes);
  return w.bytes();
}

Result<OpenClProgram> decode_program(std::string_view bytes) {
  wire::Reader r(bytes);
  OpenClProgram p;
  p.source = r.get_string(), p.options = r.get_string();
  p.kernels.resize(r.get_count());
  for (EntryPoint& k : p.kernels) {
    k.symbol = r.get_string(), k.num_tiles = r.get<int64_t>();
    k.threads = r.get<int>(), k.shared_bytes = r.get<int64_t>();
  }
  p.param_bytes.resize(r.get_count());
  for (int64_t& size : p.param_bytes) size = r.get<int64_t>();
  if (!r.done()) return invalid("a request to compile that is not valid");
  return p;
}

// The device of a worker.
class Compiler {
 public:
  explicit Compiler(Device& device) : device_(device) {}

  [[nodiscard]] Result<std::string> binary(const OpenClProgram& program) {
    runtime::DeviceModule module;
    const runtime::CodeImage image = {.options = program.options.c_str(),
                                      .data = program.source.c_str(),
                                      .bytes = std::ssize(program.source)};
    HONE_RETURN_IF_ERROR(check(runtime::device_load(device_, image, module)));
    // The compiler of a device that is a CPU makes code for the shape of a launch when it sees one.
    if (runtime::device_properties(device_).is_cpu) run_once(module, program);
    const int64_t bytes = runtime::device_binary(device_, module, nullptr, 0);
    std::string data(static_cast<size_t>(std::max<int64_t>(bytes, 0)), '\0');
    const bool copied =
        bytes > 0 && runtime::device_binary(device_, module, data.data(), bytes) == bytes;
    runtime::device_unload(device_, module);
    HONE_RETURN_IF_ERROR(check(copied));
    return data;
  }

 private:
  [[nodiscard]] Status check(bool good) const {
    return good ? ok_status() : Status(Code::kUnsupported, runtime::device_error(device_));
  }

  // Launches the kernels as a model does, on zeros. What cannot be run is compiled when it is.
  void run_once(const runtime::DeviceModule& module, const OpenClProgram& program) {
    int64_t all = 0;
    for (const int64_t bytes : program.param_bytes) all += bytes;
    if (all > kMostArguments) return;
    std::vector<runtime::DeviceBuffer> buffers(program.param_bytes.size());
    std::vector<runtime::DeviceArgument> arguments;
    bool good = true;
    for (size_t i = 0; good && i < buffers.size(); ++i) {
      const int64_t bytes = std::max<int64_t>(program.param_bytes[i], 1);
      good = runtime::device_allocate(device_, bytes, buffers[i]) &&
             runtime::device_zero(device_, buffers[i], 0, bytes);
      arguments.push_back({buffers[i].handle, 0});
    }
    for (size_t k = 0; good && k < program.kernels.size(); ++k)
      good = launch(module, program.kernels[k], arguments);
    (void)runtime::device_synchronize(device_);
    for (runtime::DeviceBuffer& buffer : buffers) runtime::device_free(device_, buffer);
  }

  [[nodiscard]] bool launch(const runtime::DeviceModule& module, const EntryPoint& kernel,
                            const std::vector<runtime::DeviceArgument>& arguments) {
    runtime::DeviceFunction function;
    if (!runtime::device_function(device_, module, kernel.symbol.c_str(), kernel.threads,
                                  kernel.shared_bytes, function))
      return false;
    const bool good =
        runtime::device_check_arguments(device_, function, static_cast<int>(arguments.size())) &&
        runtime::device_launch(device_, function, kernel.num_tiles, arguments.data(),
                               static_cast<int>(arguments.size())) &&
        runtime::device_synchronize(device_);
    runtime::device_release(device_, function);
    return good;
  }

  Device& device_;
};

// Returns whether this machine has the device, as its driver describes it.
bool is_here(const target::Gpu& gpu) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::string key = target::device_key(gpu);
  const std::lock_guard lock(mutex);
  const auto [place, added] = known.try_emplace(key);
  if (added) {
    const Result<target::Gpu> here = target::detect_gpu(gpu);
    place->second = here.ok() && target::device_key(*here) == key;
  }
  return place->second;
}

}  // namespace

Result<OpenClBinary> compile_opencl_apart(const OpenClProgram& program, const std::string& device) {
  CompilePool* const processes = compile_pool({"--compile-opencl", device});
  if (processes == nullptr)
    return error(Code::kNotFound, "there is no worker program that compiles for OpenCL");
  HONE_ASSIGN_OR_RETURN(const std::string answer, processes->compile(encode(program)));
  wire::Reader r(answer);
  std::string problem = r.get_string();
  if (!problem.empty()) return Status(Code::kUnsupported, std::move(problem));
  OpenClBinary made;
  made.device = r.get_string(), made.data = r.get_string();
  if (!r.done()) return error(Code::kInternal, "the answer of a compiling worker is not valid");
  return made;
}

void add_opencl_binary(Executable& executable, const target::Gpu& gpu) {
  if (gpu.api != target::GpuApi::kOpenCl || !is_here(gpu)) return;
  const std::string& code = executable.code.str();
  const Result<CodeNotes> notes = read_notes(code);
  runtime::CodeImage source;
  if (!notes.ok() || !runtime::code_source(code.data(), source)) return;
  OpenClProgram program = {static_cast<const char*>(source.data), source.options, {}, {}};
  for (const EntryPoint& entry : executable.entries) {
    if (!entry.prepare) program.kernels.push_back(entry);
  }
  for (const ParamNote& param : notes->params) program.param_bytes.push_back(param.bytes);
  Result<OpenClBinary> binary = compile_opencl_apart(program, notes->device);
  if (!binary.ok()) {
    log_info("no binary of OpenCL: {}", binary.status().message());
    return;
  }
  const DeviceCode images[] = {{.format = runtime::CodeFormat::kOpenClBinary,
                                .device = std::move(binary->device),
                                .data = std::move(binary->data)},
                               {.options = source.options, .data = program.source}};
  executable.code = with_notes(encode_device_code(images), *notes);
}

int compile_opencl_worker_main(int fd, const std::string& name) {
  isolate_worker(fd);
  char message[runtime::kDeviceErrorBytes] = "";
  const int index = runtime::device_find(runtime::DeviceKind::kOpenCl, name.c_str(), message);
  Device* device = nullptr;
  if (index >= 0) device = runtime::device_open(runtime::DeviceKind::kOpenCl, index, message);
  if (device == nullptr) return serve_compiles(fd, message, {});
  const runtime::DeviceProperties& is = runtime::device_properties(*device);
  const std::string key = fmt::format("{} {}", is.name, is.driver);
  return serve_compiles(fd, "", [&](const std::string& request) {
    const Result<OpenClProgram> program = decode_program(request);
    const Result<std::string> made =
        program.ok() ? Compiler(*device).binary(*program) : Result<std::string>(program.status());
    wire::Writer w;
    w.put(made.status().message());
    if (made.ok()) w.put(key).put(*made);
    return w.bytes();
  });
}

}  // namespace hone::backend::gpu
