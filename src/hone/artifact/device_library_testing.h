// artifact/device_library_testing.h - for tests: libraries of models on devices, loaded and called
// through the C interface.
#pragma once

#include <dlfcn.h>

#include <string>

#include "hone/artifact/device_testing.h"
#include "hone/artifact/loaded_library_testing.h"
#include "hone/runtime/device/device.h"
#include "hone/runtime/hone_model.h"

namespace hone::artifact::testing {

// Returns why there is no device of a kind; "" if there is one.
inline std::string no_device(DeviceKind kind) {
  char message[runtime::kDeviceErrorBytes];
  return runtime::device_count(kind, message) > 0 ? "" : message;
}

// Returns a function that only the driver of runtime/device/fake_cuda.cc has; null with another.
template <typename Function>
Function* fake_function(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(driver, name));
}

// Returns the number of graphs that the fake driver has launched; -1 with a real one.
inline int graph_launches() {
  int (*count)() = fake_function<int()>("fake_graph_launches");
  return count == nullptr ? -1 : count();
}

// A library of the model above, loaded, and its functions.
class Library : public LoadedLibrary {
 public:
  explicit Library(const ArtifactSpec& spec) : LoadedLibrary(spec) {
    find("hone_model_create", create);
    find("hone_model_create_with", create_with);
    find("hone_model_destroy", destroy);
    find("hone_model_run", run);
    find("hone_model_run_device", run_device);
    find("hone_model_device", device);
    find("hone_model_device_bytes", device_bytes);
    find("hone_model_output_shape", output_shape);
    find("hone_model_last_error", last_error);
    find("hone_model_profile", profile);
    find("hone_model_step_seconds", step_seconds);
    find("hone_model_num_threads", num_threads);
  }
  [[nodiscard]] std::string bytes() const { return read_file(path()); }

  // Returns the model's error for these options, or "".
  std::string create_error(const hone_model_options& options) const {
    hone_model* model = nullptr;
    if (create_with(&model, &options) != 0) return last_error(nullptr);
    destroy(model);
    return "";
  }

  decltype(&hone_model_create) create = nullptr;
  decltype(&hone_model_create_with) create_with = nullptr;
  decltype(&hone_model_destroy) destroy = nullptr;
  decltype(&hone_model_run) run = nullptr;
  decltype(&hone_model_run_device) run_device = nullptr;
  decltype(&hone_model_device) device = nullptr;
  decltype(&hone_model_device_bytes) device_bytes = nullptr;
  decltype(&hone_model_output_shape) output_shape = nullptr;
  decltype(&hone_model_last_error) last_error = nullptr;
  decltype(&hone_model_profile) profile = nullptr;
  decltype(&hone_model_step_seconds) step_seconds = nullptr;
  decltype(&hone_model_num_threads) num_threads = nullptr;
};

// Returns why no model can be made of a spec, or "".
inline std::string error_of(const ArtifactSpec& spec) {
  const Library library(spec);
  hone_model_options options = {};
  options.size = sizeof options;
  return library.create_error(options);
}

}  // namespace hone::artifact::testing
