// measure/arena.h - memory of a worker: on huge pages where the system gives them, so
// that a kernel's time does not depend on how its buffers happen to be paged. Before the first
// piece and behind each lies a zone that nobody may write.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/base/status.h"

namespace hone::measure {

class Arena {
 public:
  Arena() = default;
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  // Forgets all pieces and makes room for pieces of these sizes. Memory is kept if it is enough.
  [[nodiscard]] Status reserve(const std::vector<int64_t>& sizes);
  [[nodiscard]] void* piece(size_t i) const { return base_ + offsets_[i]; }
  // All bytes of a piece become 0xff: NaN, -1 or "true", hardly ever a right answer.
  void poison(size_t i);
  // After damage, which would be found again for ever.
  void restore_zones();
  // Index of the first piece that something was written behind (or before: 0), or -1.
  [[nodiscard]] int damaged() const;
  [[nodiscard]] Status make_read_only();

 private:
  void release();
  char* mapped_ = nullptr;
  char* base_ = nullptr;  // within it, on a huge page
  size_t capacity_ = 0;   // from there on
  std::vector<int64_t> offsets_, sizes_;
};

}  // namespace hone::measure
