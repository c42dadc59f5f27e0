#include "hone/backend/gpu/emulated_memory_testing.h"

#include <fmt/format.h>

#include <cstring>

#include "hone/base/assert.h"
#include "hone/base/round_up.h"

namespace hone::backend::gpu::emulated {
namespace {

constexpr int kPoison = 0xff;          // floats of all types are not numbers
constexpr unsigned kFirstPart = 1024;  // addresses in shared memory
constexpr unsigned kPartStride = 1 << 24;
constexpr size_t kBetween = 4096;  // bytes between buffers
constexpr uint32_t kWarpThreads = 32;

bool same_warp(const Moment& a, const Moment& b) {
  return a.thread / kWarpThreads == b.thread / kWarpThreads;
}
// Returns whether no barrier orders two accesses of different threads.
bool unordered(const Moment& a, const Moment& b) {
  return a.epoch == b.epoch && a.thread != b.thread &&
         (!same_warp(a, b) || a.warp_epoch == b.warp_epoch);
}

std::string race(const char* what, uint32_t thread, const char* before) {
  return fmt::format("a race: {} shared memory that thread {} {}, with no barrier in between", what,
                     thread, before);
}

}  // namespace

void SharedMemory::add(char* begin, size_t bytes) {
  parts_.push_back({begin, bytes, std::vector<Cell>(bytes)});
}

void SharedMemory::poison() {
  for (const Part& part : parts_) std::memset(part.begin, kPoison, part.bytes);
}

const SharedMemory::Part* SharedMemory::part_of(const void* p) const {
  const auto* at = static_cast<const char*>(p);
  for (const Part& part : parts_) {
    if (at >= part.begin && at < part.begin + part.bytes) return &part;
  }
  return nullptr;
}

std::string SharedMemory::touch(const void* p, size_t bytes, bool write, const Moment& now) {
  Part* part = const_cast<Part*>(part_of(p));
  HONE_ASSERT(part != nullptr, "the memory is not shared");
  const auto first = static_cast<size_t>(static_cast<const char*>(p) - part->begin);
  if (first + bytes > part->bytes) return "an access beyond the end of shared memory";
  for (size_t i = first; i < first + bytes; ++i) {
    Cell& cell = part->cells[i];
    if (unordered(cell.write, now))
      return race(write ? "a write to" : "a read of", cell.write.thread, "wrote");
    if (!write) {
      if (cell.read.epoch == now.epoch && cell.read.thread != now.thread)
        (same_warp(cell.read, now) ? cell.lane_read : cell.warp_read) = cell.read;
      cell.read = now;
      continue;
    }
    for (const Moment* read : {&cell.read, &cell.lane_read, &cell.warp_read}) {
      if (unordered(*read, now)) return race("a write to", read->thread, "read");
    }
    cell.write = now;
  }
  return "";
}

unsigned SharedMemory::address(const void* p) const {
  const Part* part = part_of(p);
  if (part == nullptr) return 0;
  return kFirstPart + static_cast<unsigned>(part - parts_.data()) * kPartStride +
         static_cast<unsigned>(static_cast<const char*>(p) - part->begin);
}

char* SharedMemory::pointer(unsigned address) const {
  if (address < kFirstPart) return nullptr;
  const size_t part = (address - kFirstPart) / kPartStride,
               offset = (address - kFirstPart) % kPartStride;
  return part < parts_.size() && offset < parts_[part].bytes ? parts_[part].begin + offset
                                                             : nullptr;
}

// Buffers begin at odd multiples of 16 bytes: that is all that kernels may rely on.
GlobalMemory::GlobalMemory(std::span<const Buffer> buffers) {
  size_t all = kBetween;
  for (const Buffer& b : buffers) all += round_up(b.bytes, 32) + kBetween;
  memory_.assign(all + 32, static_cast<char>(kPoison));
  const auto base = reinterpret_cast<uintptr_t>(memory_.data());
  char* next = memory_.data() + (round_up(base + kBetween, uintptr_t{32}) + 16 - base);
  for (const Buffer& b : buffers) {
    if (b.bytes > 0) std::memcpy(next, b.contents, b.bytes);
    spans_.push_back({b.name, next, b.bytes, b.writable});
    next += round_up(b.bytes, 32) + kBetween;
  }
}

std::string GlobalMemory::touch(const void* p, size_t bytes, bool write) {
  const auto* at = static_cast<const char*>(p);
  for (size_t i = 0; i < spans_.size(); ++i) {
    const size_t number = (last_ + i) % spans_.size();
    const Span& span = spans_[number];
    if (at < span.begin || at + bytes > span.begin + span.bytes) continue;
    last_ = number;
    return write && !span.writable ? fmt::format("a write to {}, which is only read", span.name)
                                   : "";
  }
  for (const Span& span : spans_) {
    const std::ptrdiff_t offset = at - span.begin, end = static_cast<std::ptrdiff_t>(span.bytes);
    if (offset > -static_cast<std::ptrdiff_t>(kBetween) / 2 &&
        offset < end + static_cast<std::ptrdiff_t>(kBetween) / 2)
      return fmt::format("a {} of {} bytes at byte {} of {}, which has {}",
                         write ? "write" : "read", bytes, offset, span.name, span.bytes);
  }
  return fmt::format("a {} of {} bytes far from all buffers", write ? "write" : "read", bytes);
}

}  // namespace hone::backend::gpu::emulated
