// backend/gpu/emulated_memory_testing.h - for tests: the memory of a GPU whose threads this machine
// emulates. Accesses outside of a buffer, writes to what a kernel may only read, and accesses of
// threads of a block to shared memory that no barrier orders are errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hone::backend::gpu::emulated {

// Who accesses memory, and behind which barriers of the block and of the warp.
struct Moment {
  uint32_t thread = 0, epoch = 0, warp_epoch = 0;  // the epoch 0 is none
};

// The shared memory of a block: arrays that kernels declare, and what a launch gives.
class SharedMemory {
 public:
  // Adds a range, which the caller keeps.
  void add(char* begin, size_t bytes);
  // Makes everything not a number, as a block finds it.
  void poison();
  [[nodiscard]] bool has(const void* p) const { return part_of(p) != nullptr; }
  // Returns the error of an access, or "".
  [[nodiscard]] std::string touch(const void* p, size_t bytes, bool write, const Moment& now);
  // Addresses in shared memory's own space, where no array begins at 0; 0 and null if there is
  // none.
  [[nodiscard]] unsigned address(const void* p) const;
  [[nodiscard]] char* pointer(unsigned address) const;

 private:
  // The last write of a byte, its last reads, and the last ones of another lane and another warp.
  struct Cell {
    Moment write, read, lane_read, warp_read;
  };
  struct Part {
    char* begin;
    size_t bytes;
    std::vector<Cell> cells;
  };
  [[nodiscard]] const Part* part_of(const void* p) const;
  std::vector<Part> parts_;
};

// The buffers of a launch, each between bytes that belong to none.
class GlobalMemory {
 public:
  struct Buffer {
    std::string name;
    const void* contents;
    size_t bytes;
    bool writable;
  };
  explicit GlobalMemory(std::span<const Buffer> buffers);
  [[nodiscard]] char* at(size_t buffer) { return spans_[buffer].begin; }
  // Returns the error of an access, or "".
  [[nodiscard]] std::string touch(const void* p, size_t bytes, bool write);

 private:
  struct Span {
    std::string name;
    char* begin;
    size_t bytes;
    bool writable;
  };
  std::vector<char> memory_;
  std::vector<Span> spans_;
  size_t last_ = 0;  // the buffer of the last access, which is asked first
};

}  // namespace hone::backend::gpu::emulated
