// cost/shared_library.h - a library that is loaded when it is first needed: no command pays for one
// that it does not use.
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone::cost {

class SharedLibrary {
 public:
  // It stays loaded.
  explicit SharedLibrary(std::string file);
  // An error is what the loader said, or the function that is missing.
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

// Where a library lies beside this program, installed or in the build folder: bin/hone,
// lib/hone/NAME.
[[nodiscard]] std::string beside_program(std::string_view name);

}  // namespace hone::cost
