// measure/arena.h - memory of a worker, on huge pages where the system gives them, so that a
// kernel's time does not depend on how its buffers are paged. A guard zone, which nobody may write,
// lies before the first piece and behind each piece.
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
  // Discards all pieces and makes room for pieces of these sizes. The memory is kept if it is large
  // enough.
  [[nodiscard]] Status reserve(const std::vector<int64_t>& sizes);
  [[nodiscard]] void* piece(size_t i) const { return base_ + offsets_[i]; }
  // Sets all bytes of a piece to 0xff, which is NaN, -1 or "true" and hardly ever a right answer.
  void poison(size_t i);
  // Repairs the guard zones after damage, which would otherwise be reported again.
  void restore_zones();
  // Returns the index of the first piece whose following zone was written (0 also for the zone
  // before it), or -1.
  [[nodiscard]] int damaged() const;
  [[nodiscard]] Status make_read_only();

 private:
  void release();
  char* mapped_ = nullptr;
  char* base_ = nullptr;  // first piece; inside the mapping, on a huge page
  size_t capacity_ = 0;   // bytes from base_ on
  std::vector<int64_t> offsets_, sizes_;
};

}  // namespace hone::measure
