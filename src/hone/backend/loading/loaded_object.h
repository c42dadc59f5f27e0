// backend/loading/loaded_object.h - links an object of generated code into this process, for
// programs that run code which others have compiled, and that are without LLVM (tools/serve).
// Generated code is position independent, refers to its own constants, and calls functions of libc
// and libm alone (backend/cpu/check_symbols.h), so a few kinds of relocations are all there is.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone::backend {

class LoadedObject {
 public:
  // Links an ELF relocatable file for this machine. The error says what it has that is not known.
  [[nodiscard]] static Result<std::unique_ptr<LoadedObject>> load(std::string_view object);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;
  // Returns null if there is no such symbol.
  [[nodiscard]] void* symbol(const std::string& name) const;

 private:
  LoadedObject(char* image, size_t bytes, std::map<std::string, void*> symbols)
      : image_(image), bytes_(bytes), symbols_(std::move(symbols)) {}
  char* image_;
  size_t bytes_;
  std::map<std::string, void*> symbols_;
};

}  // namespace hone::backend
