#include "hone/cost/shared_library.h"

#include <dlfcn.h>

namespace hone::cost {

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

}  // namespace hone::cost
