#include "hone/cost/shared_library.h"

#include <dlfcn.h>

#include <filesystem>

namespace hone::cost {

namespace fs = std::filesystem;

SharedLibrary::SharedLibrary(std::string file)
    : file_(std::move(file)), handle_(dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) status_ = error(Code::kUnsupported, "{}", dlerror());
}

void* SharedLibrary::find(const char* name) {
  if (!status_.ok()) return nullptr;
  void* found = dlsym(handle_, name);
  if (found == nullptr) status_ = error(Code::kUnsupported, "{} has no function {}", file_, name);
  return found;
}

std::string beside_program(std::string_view name) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path() / "../lib/hone" / name).lexically_normal().string();
}

}  // namespace hone::cost
