// runtime/device/code.h - the code of a kernel for devices: one or more images of the same program,
// such as cubins for several architectures, of which a device takes the best that it can run.
//
// The container is one block, little-endian: a CodeHeader, CodeEntry[count], then the data.
// backend/device_code.h writes it.
#pragma once

#include <stdint.h>

#include "hone/runtime/device/device_properties.h"

namespace hone::runtime {

// Values are written into artifacts.
enum class CodeFormat : int32_t { kOpenClSource = 1, kOpenClBinary = 2, kCubin = 3, kPtx = 4 };

struct CodeImage {
  CodeFormat format = CodeFormat::kOpenClSource;
  // For cubins and PTX, 10 * major + minor of the architecture that it was compiled for.
  int32_t capability = 0;
  // It runs on this capability alone, as code for sm_90a does.
  bool specific = false;
  const char* options = "";    // for OpenCL's compiler
  const char* device = "";     // for binaries of OpenCL: the device's name and driver, as one text
  const void* data = nullptr;  // sources and PTX end in a zero, which `bytes` does not count
  int64_t bytes = 0;
};

inline constexpr char kCodeMagic[8] = {'H', 'O', 'N', 'E', 'C', 'O', 'D', 'E'};
inline constexpr uint32_t kCodeVersion = 1;

struct CodeHeader {
  char magic[8];
  uint32_t version;
  uint32_t count;
  uint64_t total_bytes;
};

struct CodeEntry {
  int32_t format;
  int32_t capability;
  uint32_t specific;
  uint32_t reserved;
  uint64_t options;  // offsets of strings
  uint64_t device;
  uint64_t data;  // offset
  uint64_t bytes;
};

// Returns null if the block is a valid container, else the problem (a constant string).
[[nodiscard]] const char* code_check(const void* container, uint64_t bytes);
// Returns an image of a container that code_check() accepts.
[[nodiscard]] CodeImage code_image(const void* container, uint32_t index);
inline constexpr int kCodeMessageBytes = 256;
// Finds the best image for a device: a binary before what has to be compiled, the newest
// architecture that the device runs first. Returns false if it runs none, and then `message` of
// kCodeMessageBytes says what is there.
[[nodiscard]] bool code_choose(const void* container, const DeviceProperties& device,
                               CodeImage& out, char* message);

// Finds the image that is a source of OpenCL. Returns false if there is none.
[[nodiscard]] bool code_source(const void* container, CodeImage& out);

}  // namespace hone::runtime
