// runtime/device/device_testing.h - devices that tests open, and their memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "hone/runtime/device/device.h"

namespace hone::runtime::testing {

struct CloseDevice {
  void operator()(Device* device) const { device_close(device); }
};
using DevicePtr = std::unique_ptr<Device, CloseDevice>;

// Null, with the reason in `message`, if there is none.
inline DevicePtr open_device(DeviceKind kind, std::string& message) {
  char text[kDeviceErrorBytes];
  DevicePtr device(device_open(kind, 0, text));
  message = text;
  return device;
}

// OpenCL's device that runs on the CPU. Without it, tests fail: scripts/setup.sh installs it.
inline DevicePtr open_pocl(std::string& message) {
  char text[kDeviceErrorBytes];
  const int index = device_find(DeviceKind::kOpenCl, "Portable Computing Language", text);
  DevicePtr device(index < 0 ? nullptr : device_open(DeviceKind::kOpenCl, index, text));
  message = text;
  return device;
}

inline CodeImage opencl_source(const std::string& text, const char* options = "") {
  return {.format = CodeFormat::kOpenClSource,
          .options = options,
          .data = text.c_str(),
          .bytes = static_cast<int64_t>(text.size())};
}

// A buffer that is freed with its scope.
class Buffer {
 public:
  Buffer(Device& device, int64_t bytes) : device_(device) {
    made_ = device_allocate(device, bytes, buffer_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { device_free(device_, buffer_); }
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] const DeviceBuffer& get() const { return buffer_; }
  [[nodiscard]] DeviceArgument at(int64_t offset = 0) const { return {buffer_.handle, offset}; }

 private:
  Device& device_;
  DeviceBuffer buffer_;
  bool made_ = false;
};

template <typename T>
bool put(Device& device, const Buffer& buffer, const std::vector<T>& from, int64_t offset = 0) {
  return device_upload(device, buffer.get(), offset, from.data(),
                       static_cast<int64_t>(from.size() * sizeof(T))) &&
         device_synchronize(device);
}

template <typename T>
std::vector<T> take(Device& device, const Buffer& buffer, size_t count, int64_t offset = 0) {
  std::vector<T> to(count);
  if (!device_download(device, to.data(), buffer.get(), offset,
                       static_cast<int64_t>(count * sizeof(T))) ||
      !device_synchronize(device))
    to.clear();
  return to;
}

}  // namespace hone::runtime::testing
