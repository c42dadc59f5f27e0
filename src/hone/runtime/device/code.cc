#include "hone/runtime/device/code.h"

#include <stdio.h>
#include <string.h>

namespace hone::runtime {
namespace {

const CodeEntry* entries_of(const void* container) {
  return reinterpret_cast<const CodeEntry*>(static_cast<const char*>(container) +
                                            sizeof(CodeHeader));
}

bool is_text(CodeFormat format) {
  return format == CodeFormat::kOpenClSource || format == CodeFormat::kPtx;
}

bool string_fits(const char* block, uint64_t total, uint64_t offset) {
  return offset < total && memchr(block + offset, 0, total - offset) != nullptr;
}

bool entry_fits(const char* block, uint64_t total, const CodeEntry& entry) {
  if (entry.format < static_cast<int32_t>(CodeFormat::kOpenClSource) ||
      entry.format > static_cast<int32_t>(CodeFormat::kPtx))
    return false;
  if (!string_fits(block, total, entry.options) || !string_fits(block, total, entry.device))
    return false;
  if (entry.data > total || entry.bytes > total - entry.data) return false;
  if (!is_text(static_cast<CodeFormat>(entry.format))) return true;
  return entry.bytes < total - entry.data && block[entry.data + entry.bytes] == '\0';
}

bool is_for(const CodeImage& image, DeviceKind kind) {
  const bool opencl =
      image.format == CodeFormat::kOpenClSource || image.format == CodeFormat::kOpenClBinary;
  return opencl == (kind == DeviceKind::kOpenCl);
}

// How well an image suits a device; 0 if it does not run there.
int rank_of(const CodeImage& image, const DeviceProperties& device) {
  if (!is_for(image, device.kind)) return 0;
  switch (image.format) {
    case CodeFormat::kOpenClSource: return 1;
    case CodeFormat::kOpenClBinary: {
      char name[sizeof device.name + sizeof device.driver + 1];
      snprintf(name, sizeof name, "%s %s", device.name, device.driver);
      return strcmp(name, image.device) == 0 ? 2 : 0;
    }
    case CodeFormat::kCubin: {
      const bool same_major = image.capability / 10 == device.capability / 10;
      const bool runs = image.specific ? image.capability == device.capability
                                       : same_major && image.capability <= device.capability;
      return runs ? 4000 + 2 * image.capability + (image.specific ? 1 : 0) : 0;
    }
    case CodeFormat::kPtx: {
      const bool runs = image.specific ? image.capability == device.capability
                                       : image.capability <= device.capability;
      return runs ? 1 + 2 * image.capability + (image.specific ? 1 : 0) : 0;
    }
  }
  return 0;
}

// Lists what the images are for, such as "sm_80, sm_90a, PTX of sm_90a".
void list_images(const void* container, char* text, size_t size) {
  const auto& header = *static_cast<const CodeHeader*>(container);
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < header.count && used < size; ++i) {
    const CodeImage image = code_image(container, i);
    const char* separator = i == 0 ? "" : ", ";
    int added = 0;
    if (image.format == CodeFormat::kOpenClSource)
      added = snprintf(text + used, size - used, "%sOpenCL C", separator);
    else if (image.format == CodeFormat::kOpenClBinary)
      added = snprintf(text + used, size - used, "%sOpenCL on %s", separator, image.device);
    else
      added = snprintf(text + used, size - used, "%s%ssm_%d%s", separator,
                       image.format == CodeFormat::kPtx ? "PTX of " : "", image.capability,
                       image.specific ? "a" : "");
    used += static_cast<size_t>(added);
  }
}

}  // namespace

const char* code_check(const void* container, uint64_t bytes) {
  const char* block = static_cast<const char*>(container);
  if (bytes < sizeof(CodeHeader)) return "the code for devices is cut off";
  const auto& header = *static_cast<const CodeHeader*>(container);
  if (memcmp(header.magic, kCodeMagic, sizeof kCodeMagic) != 0)
    return "this is no code for devices";
  if (header.version != kCodeVersion)
    return "the code for devices has a version that this runtime does not know";
  const uint64_t total = header.total_bytes;
  if (total > bytes || total < sizeof(CodeHeader)) return "the code for devices is cut off";
  if (header.count > (total - sizeof(CodeHeader)) / sizeof(CodeEntry))
    return "the code for devices is out of range";
  for (uint32_t i = 0; i < header.count; ++i)
    if (!entry_fits(block, total, entries_of(container)[i]))
      return "the code for devices is out of range";
  return nullptr;
}

CodeImage code_image(const void* container, uint32_t index) {
  const char* block = static_cast<const char*>(container);
  const CodeEntry& entry = entries_of(container)[index];
  return {.format = static_cast<CodeFormat>(entry.format),
          .capability = entry.capability,
          .specific = entry.specific != 0,
          .options = block + entry.options,
          .device = block + entry.device,
          .data = block + entry.data,
          .bytes = static_cast<int64_t>(entry.bytes)};
}

bool code_choose(const void* container, const DeviceProperties& device, CodeImage& out,
                 char* message) {
  const auto& header = *static_cast<const CodeHeader*>(container);
  int best = 0;
  for (uint32_t i = 0; i < header.count; ++i) {
    const CodeImage image = code_image(container, i);
    const int rank = rank_of(image, device);
    if (rank <= best) continue;
    best = rank;
    out = image;
  }
  if (best > 0) return true;
  char images[kCodeMessageBytes / 2];
  list_images(container, images, sizeof images);
  if (device.kind == DeviceKind::kCuda)
    snprintf(message, kCodeMessageBytes, "the code is for %s, but %.64s is sm_%d", images,
             device.name, device.capability);
  else
    snprintf(message, kCodeMessageBytes, "the code is for %s, which %.64s does not run", images,
             device.name);
  return false;
}

bool code_source(const void* container, CodeImage& out) {
  const auto& header = *static_cast<const CodeHeader*>(container);
  for (uint32_t i = 0; i < header.count; ++i) {
    out = code_image(container, i);
    if (out.format == CodeFormat::kOpenClSource) return true;
  }
  return false;
}

}  // namespace hone::runtime
