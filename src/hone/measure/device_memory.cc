#include "hone/measure/device_memory.h"

#include <algorithm>
#include <array>

namespace hone::measure {
namespace {

using runtime::DeviceBuffer;

constexpr int64_t kZoneBytes = 256;  // pieces begin at multiples of it, as buffers of drivers do
constexpr unsigned char kZoneByte = 0xa5;

using Zone = std::array<unsigned char, kZoneBytes>;

const Zone& intact_zone() {
  static const Zone zone = [] {
    Zone bytes;
    bytes.fill(kZoneByte);
    return bytes;
  }();
  return zone;
}

}  // namespace

Status device_status(const runtime::Device& device, bool succeeded) {
  return succeeded ? ok_status() : error(Code::kUnsupported, "{}", runtime::device_error(device));
}

DeviceMemory::~DeviceMemory() {
  for (Piece& piece : pieces_) runtime::device_free(device_, piece.buffer);
}

Status DeviceMemory::reserve(const std::vector<int64_t>& sizes) {
  while (pieces_.size() > sizes.size()) {
    runtime::device_free(device_, pieces_.back().buffer);
    pieces_.pop_back();
  }
  pieces_.resize(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    Piece& piece = pieces_[i];
    piece.bytes = sizes[i];
    const int64_t needed = piece.bytes + 2 * kZoneBytes;
    if (piece.buffer.handle != 0 && piece.buffer.bytes >= needed) continue;
    runtime::device_free(device_, piece.buffer);
    HONE_RETURN_IF_ERROR(
        device_status(device_, runtime::device_allocate(device_, needed, piece.buffer)));
  }
  return restore_zones();
}

runtime::DeviceArgument DeviceMemory::piece(size_t i) const {
  return {pieces_[i].buffer.handle, kZoneBytes};
}

Status DeviceMemory::upload(size_t i, const void* from, int64_t bytes) {
  HONE_ASSERT(bytes <= pieces_[i].bytes, "more than a piece has");
  return device_status(device_,
                       runtime::device_upload(device_, pieces_[i].buffer, kZoneBytes, from, bytes));
}

Status DeviceMemory::download(size_t i, void* to, int64_t bytes) const {
  HONE_ASSERT(bytes <= pieces_[i].bytes, "more than a piece has");
  return device_status(device_,
                       runtime::device_download(device_, to, pieces_[i].buffer, kZoneBytes, bytes));
}

Status DeviceMemory::poison(size_t i) {
  static const std::vector<unsigned char> poison(size_t{1} << 20, 0xff);
  const auto most = static_cast<int64_t>(poison.size());
  const Piece& piece = pieces_[i];
  for (int64_t done = 0; done < piece.bytes; done += most) {
    HONE_RETURN_IF_ERROR(device_status(
        device_, runtime::device_upload(device_, piece.buffer, kZoneBytes + done, poison.data(),
                                        std::min(most, piece.bytes - done))));
  }
  return ok_status();
}

Status DeviceMemory::restore_zones() {
  for (const Piece& piece : pieces_) {
    for (const int64_t place : {int64_t{0}, kZoneBytes + piece.bytes}) {
      HONE_RETURN_IF_ERROR(device_status(
          device_,
          runtime::device_upload(device_, piece.buffer, place, intact_zone().data(), kZoneBytes)));
    }
  }
  return ok_status();
}

Result<bool> DeviceMemory::is_damaged() const {
  std::vector<Zone> zones(2 * pieces_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const DeviceBuffer& buffer = pieces_[i].buffer;
    const bool read =
        runtime::device_download(device_, zones[2 * i].data(), buffer, 0, kZoneBytes) &&
        runtime::device_download(device_, zones[2 * i + 1].data(), buffer,
                                 kZoneBytes + pieces_[i].bytes, kZoneBytes);
    // What was begun writes into `zones`.
    const bool done = runtime::device_synchronize(device_);
    HONE_RETURN_IF_ERROR(device_status(device_, read && done));
  }
  return std::any_of(zones.begin(), zones.end(),
                     [](const Zone& zone) { return zone != intact_zone(); });
}

}  // namespace hone::measure
