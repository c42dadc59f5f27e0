#include "hone/backend/gpu/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "hone/backend/gpu/cubin.h"

namespace hone::backend::gpu {
namespace {

// The functions of NVRTC that are called; 0 is success.
struct Nvrtc {
  using Program = void*;
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*,
                const char* const*) = nullptr;
  int (*compile)(Program, int options, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*ptx_size)(Program, size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  std::string problem;  // the reason why there is none
};

constexpr const char* kNoWarnings = "-w";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The library's files, the one to take first.
std::vector<std::string> places() {
  if (const std::string given = environment("HONE_NVRTC"); !given.empty()) return {given};
  constexpr std::string_view kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  std::vector<std::string> out(std::begin(kNames), std::end(kNames));
  for (const std::string& toolkit :
       {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (toolkit.empty()) continue;
    for (const std::string_view name : kNames)
      out.push_back(fmt::format("{}/lib64/{}", toolkit, name));
  }
  const std::string python = environment("VIRTUAL_ENV");
  std::error_code error;
  std::vector<std::string> found;
  if (!python.empty()) {
    for (auto it = std::filesystem::recursive_directory_iterator(python + "/lib", error);
         !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename();
      // Below lib/python3.x/site-packages/nvidia.
      if (it.depth() == 2 && name != "nvidia") it.disable_recursion_pending();
      if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames))
        found.push_back(it->path());
    }
  }
  std::sort(found.rbegin(), found.rend());
  out.insert(out.end(), found.begin(), found.end());
  return out;
}

Nvrtc open_nvrtc() {
  Nvrtc out;
  const std::vector<std::string> tried = places();
  void* library = nullptr;
  for (const std::string& file : tried) {
    library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr && !environment("HONE_NVRTC").empty()) {
    out.problem = fmt::format("HONE_NVRTC names no library that can be loaded: {}", dlerror());
    return out;
  }
  if (library == nullptr) {
    out.problem = fmt::format(
        "CUDA's compiler NVRTC is not there: found none of {}; install the "
        "CUDA toolkit or Python's nvidia-cuda-nvrtc, or set HONE_NVRTC",
        fmt::join(tried, ", "));
    return out;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) out.problem = fmt::format("NVRTC has no function {}", name);
  };
  find(out.version, "nvrtcVersion");
  find(out.create, "nvrtcCreateProgram");
  find(out.compile, "nvrtcCompileProgram");
  find(out.destroy, "nvrtcDestroyProgram");
  find(out.log_size, "nvrtcGetProgramLogSize");
  find(out.log, "nvrtcGetProgramLog");
  find(out.cubin_size, "nvrtcGetCUBINSize");
  find(out.cubin, "nvrtcGetCUBIN");
  find(out.ptx_size, "nvrtcGetPTXSize");
  find(out.ptx, "nvrtcGetPTX");
  find(out.error_text, "nvrtcGetErrorString");
  return out;
}

// The library stays open: it is opened once in a process.
const Nvrtc& nvrtc() {
  static const Nvrtc opened = open_nvrtc();
  return opened;
}

std::string log_of(const Nvrtc& library, Nvrtc::Program program) {
  size_t size = 0;
  if (library.log_size(program, &size) != 0 || size == 0) return "";
  std::string log(size, '\0');
  if (library.log(program, log.data()) != 0) return "";
  log.resize(log.find_last_not_of(std::string_view("\0 \n", 3)) + 1);
  return log;
}

Result<Cubin> compile_program(const Nvrtc& library, Nvrtc::Program program,
                              const std::string& arch) {
  const std::string architecture = "--gpu-architecture=" + arch;
  const char* const options[] = {architecture.c_str(), kNoWarnings};
  const int code = library.compile(program, static_cast<int>(std::size(options)), options);
  const std::string log = log_of(library, program);
  if (code != 0)
    return error(Code::kInternal, "CUDA's compiler failed for {}: {}: {}", arch,
                 library.error_text(code), log);
  std::string data, ptx;
  size_t size = 0;
  if (library.cubin_size(program, &size) != 0 || size == 0)
    return error(Code::kUnsupported, "CUDA's compiler makes no code of {}", arch);
  data.resize(size);
  if (library.cubin(program, data.data()) != 0)
    return error(Code::kInternal, "CUDA's compiler lost the code that it made");
  if (library.ptx_size(program, &size) == 0 && size > 0) {
    ptx.resize(size);
    if (library.ptx(program, ptx.data()) != 0) ptx.clear();
    while (ptx.ends_with('\0')) ptx.pop_back();
  }
  return make_cubin(std::move(data), std::move(ptx));
}

}  // namespace

Cubin make_cubin(std::string data, std::string ptx) {
  Cubin made = {.data = std::move(data), .ptx = std::move(ptx), .kernels = {}};
  if (Result<std::vector<KernelNote>> kernels = read_kernels(made.data); kernels.ok())
    made.kernels = *std::move(kernels);
  return made;
}

Status find_nvrtc() {
  const std::string& problem = nvrtc().problem;
  return problem.empty() ? ok_status() : Status(Code::kNotFound, problem);
}

std::string nvrtc_identity() {
  const Nvrtc& library = nvrtc();
  int major = 0, minor = 0;
  if (library.version(&major, &minor) != 0) major = minor = 0;
  Dl_info about = {};
  std::error_code failure;
  uint64_t bytes = 0;
  if (dladdr(reinterpret_cast<const void*>(library.version), &about) != 0)
    bytes = std::filesystem::file_size(about.dli_fname, failure);
  return fmt::format("NVRTC {}.{} of {} bytes, {}", major, minor, bytes, kNoWarnings);
}

Result<Cubin> compile_cuda(const std::string& source, const std::string& arch) {
  HONE_RETURN_IF_ERROR(find_nvrtc());
  const Nvrtc& library = nvrtc();
  Nvrtc::Program program = nullptr;
  const int code = library.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  if (code != 0)
    return error(Code::kInternal, "CUDA's compiler failed: {}", library.error_text(code));
  Result<Cubin> made = compile_program(library, program, arch);
  library.destroy(&program);
  return made;
}

}  // namespace hone::backend::gpu
