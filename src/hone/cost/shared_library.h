// cost/shared_library.h - a library that is loaded when it is first needed, so that commands that
// do not use it do not pay for it.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace hone::cost {

class SharedLibrary {
 public:
  // Loads the library, which then stays loaded.
  explicit SharedLibrary(std::string file);
  // Returns the loader's error, or the function that is missing.
  [[nodiscard]] const Status& status() const { return status_; }
  template <typename F>
  void load(const char* name, F*& function) {
    function = reinterpret_cast<F*>(find(name));
  }

 private:
  [[nodiscard]] void* find(const char* name);

  std::string file_;
  void* handle_ = nullptr;
  Status status_ = ok_status();
};

}  // namespace hone::cost
