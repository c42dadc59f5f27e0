// backend/device_code.h - writes the container of a kernel's code for devices, which is the code of
// an Executable of a GPU and which the runtime reads (runtime/device/code.h).
#pragma once

#include <span>
#include <string>

#include "hone/runtime/device/code.h"

namespace hone::backend {

// One image of a program; the fields are those of runtime::CodeImage.
struct DeviceCode {
  runtime::CodeFormat format = runtime::CodeFormat::kOpenClSource;
  int capability = 0;
  bool specific = false;
  std::string options;
  std::string device;
  std::string data;  // a text needs no zero at its end
};

[[nodiscard]] std::string encode_device_code(std::span<const DeviceCode> images);

}  // namespace hone::backend
