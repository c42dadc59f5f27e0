#include "hone/backend/device_code.h"

#include <cstring>
#include <vector>

#include "hone/base/assert.h"
#include "hone/base/round_up.h"

namespace hone::backend {

std::string encode_device_code(std::span<const DeviceCode> images) {
  constexpr int64_t kAlignment = 64;  // of binaries, as drivers may map them
  runtime::CodeHeader header = {};
  std::memcpy(header.magic, runtime::kCodeMagic, sizeof header.magic);
  header.version = runtime::kCodeVersion;
  header.count = static_cast<uint32_t>(images.size());
  std::string bytes(sizeof header + images.size() * sizeof(runtime::CodeEntry), '\0');
  // Adds a text or a binary and returns its place; a zero follows either.
  const auto add = [&](const std::string& data, int64_t alignment) {
    bytes.resize(static_cast<size_t>(round_up(std::ssize(bytes), alignment)));
    const uint64_t place = bytes.size();
    bytes.append(data.c_str(), data.size() + 1);
    return place;
  };
  std::vector<runtime::CodeEntry> entries;
  for (const DeviceCode& image : images) {
    runtime::CodeEntry entry = {};
    entry.format = static_cast<int32_t>(image.format);
    entry.capability = image.capability;
    entry.specific = image.specific ? 1 : 0;
    entry.options = add(image.options, 1);
    entry.device = add(image.device, 1);
    entry.data = add(image.data, kAlignment);
    entry.bytes = image.data.size();
    entries.push_back(entry);
  }
  bytes.resize(static_cast<size_t>(round_up(std::ssize(bytes), 8)));
  header.total_bytes = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!entries.empty())
    std::memcpy(bytes.data() + sizeof header, entries.data(),
                entries.size() * sizeof(runtime::CodeEntry));
  HONE_ASSERT(runtime::code_check(bytes.data(), bytes.size()) == nullptr, "the container is valid");
  return bytes;
}

}  // namespace hone::backend
