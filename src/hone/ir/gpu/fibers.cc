#include "hone/ir/gpu/fibers.h"

#include <algorithm>

namespace hone::ir {

void Fibers::start(const std::vector<const Instruction*>& places,
                   const std::vector<Cell>& registers, const Instruction* after, Actor actor) {
  fibers_.clear();
  for (const Instruction* place : places) fibers_.push_back({place, registers, actor});
  current_ = 0;
  after_ = after;
}

bool Fibers::next(int64_t arrivals) {
  for (size_t i = 1; i <= fibers_.size(); ++i) {
    const size_t candidate = (current_ + i) % fibers_.size();
    const Fiber& fiber = fibers_[candidate];
    if (fiber.ended || (fiber.awaits >= 0 && fiber.arrivals == arrivals)) continue;
    current_ = candidate;
    return true;
  }
  return false;
}

bool Fibers::ended() const {
  return std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& f) { return f.ended; });
}

}  // namespace hone::ir
