#include "hone/measure/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hone::measure {
namespace {

constexpr int64_t kZone = 128;   // bytes behind each piece, and before the first
constexpr int64_t kPage = 4096;  // the first piece begins there: the zone before it costs no more
constexpr unsigned char kZoneByte = 0xa5;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Status Arena::reserve(const std::vector<int64_t>& sizes) {
  offsets_.clear();
  sizes_ = sizes;
  int64_t end = kPage;
  for (const int64_t size : sizes) {
    if (size < 0 || size > (int64_t{1} << 46)) return invalid("a buffer of {} bytes", size);
    offsets_.push_back(end);
    end = (end + size + kZone + 63) / 64 * 64;
  }
  const size_t needed = (static_cast<size_t>(end) + kHugePage) / kHugePage * kHugePage;
  if (needed > capacity_) {
    release();
    // Room to start on a huge page.
    void* memory = mmap(nullptr, needed + kHugePage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return error(Code::kIo, "no memory for {} bytes: {}", needed, std::strerror(errno));
    mapped_ = static_cast<char*>(memory);
    base_ = mapped_ + (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
    capacity_ = needed;
    madvise(base_, needed, MADV_HUGEPAGE);  // best effort
  }
  restore_zones();
  return ok_status();
}

void Arena::restore_zones() {
  if (base_ == nullptr) return;
  std::memset(base_ + kPage - kZone, kZoneByte, static_cast<size_t>(kZone));
  for (size_t i = 0; i < sizes_.size(); ++i) {
    std::memset(base_ + offsets_[i] + sizes_[i], kZoneByte, static_cast<size_t>(kZone));
  }
}

void Arena::poison(size_t i) { std::memset(piece(i), 0xff, static_cast<size_t>(sizes_[i])); }

int Arena::damaged() const {
  const auto intact = [&](int64_t offset) {
    const auto* zone = reinterpret_cast<const unsigned char*>(base_ + offset);
    return std::all_of(zone, zone + kZone, [](unsigned char b) { return b == kZoneByte; });
  };
  if (!sizes_.empty() && !intact(kPage - kZone)) return 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (!intact(offsets_[i] + sizes_[i])) return static_cast<int>(i);
  }
  return -1;
}

Status Arena::make_read_only() {
  if (base_ != nullptr && mprotect(base_, capacity_, PROT_READ) != 0) {
    return error(Code::kIo, "cannot protect {} bytes: {}", capacity_, std::strerror(errno));
  }
  return ok_status();
}

void Arena::release() {
  if (mapped_ != nullptr) munmap(mapped_, capacity_ + kHugePage);
  mapped_ = base_ = nullptr, capacity_ = 0;
}

}  // namespace hone::measure
