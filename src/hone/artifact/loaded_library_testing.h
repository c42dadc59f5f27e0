// artifact/loaded_library_testing.h - for tests: a library that is written, loaded and called
// through its C interface.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "hone/artifact/artifact_testing.h"

namespace hone::artifact::testing {

// A shared library of a spec, loaded as long as the object lives.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const ArtifactSpec& spec) {
    const Status written = write_shared_library(spec, path());
    EXPECT_TRUE(written.ok()) << written.message();
    library_ = dlopen(path().c_str(), RTLD_NOW);
    EXPECT_NE(library_, nullptr) << dlerror();
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  ~LoadedLibrary() {
    if (library_ != nullptr) dlclose(library_);
  }
  [[nodiscard]] std::string path() const { return folder_.file("model.so"); }

 protected:
  template <typename F>
  void find(const char* name, F& function) {
    if (library_ == nullptr) return;
    function = reinterpret_cast<F>(dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
  }

 private:
  Folder folder_;
  void* library_ = nullptr;
};

}  // namespace hone::artifact::testing
