// ir/gpu/fibers.h - the roles of a block as the interpreter runs them: each has registers and a
// place in the code of its own, and another one goes on when it waits for a signal.
#pragma once

#include <vector>

#include "hone/ir/bytecode.h"

namespace hone::ir {

struct Fiber {
  const Instruction* pc;
  std::vector<Cell> registers;
  Actor actor = {};
  bool ended = false;
  int32_t awaits = -1;    // the access to the signal that it waits for
  int64_t arrivals = -1;  // that had taken place when it had to wait
};

class Fibers {
 public:
  // Starts one fiber at each place, with copies of the registers; `after` is where the block goes
  // on.
  void start(const std::vector<const Instruction*>& places, const std::vector<Cell>& registers,
             const Instruction* after, Actor actor);
  [[nodiscard]] bool running() const { return !fibers_.empty(); }
  [[nodiscard]] const std::vector<Fiber>& all() const { return fibers_; }
  [[nodiscard]] int number() const { return static_cast<int>(current_); }
  [[nodiscard]] Fiber& current() { return fibers_[current_]; }
  [[nodiscard]] const Instruction* after() const { return after_; }
  // Chooses the next fiber that can go on, given the number of arrivals so far; returns false if
  // there is none.
  bool next(int64_t arrivals);
  [[nodiscard]] bool ended() const;
  void clear() { fibers_.clear(); }

 private:
  std::vector<Fiber> fibers_;
  size_t current_ = 0;
  const Instruction* after_ = nullptr;
};

}  // namespace hone::ir
