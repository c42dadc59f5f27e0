// remote/operand_store.h - the operands that a server holds for tuners, by their hash, so that each
// travels once. It has a limit of bytes: what was used longest ago makes room, unless somebody
// keeps it. Any thread may call it.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "hone/remote/protocol.h"

namespace hone::remote {

class OperandStore {
 public:
  explicit OperandStore(int64_t most_bytes) : most_bytes_(most_bytes) {}

  struct State {
    int64_t bytes = 0;  // how much of the memory is there
    bool complete = false;
    // Whoever keeps this pointer keeps the operands from making room for others.
    std::shared_ptr<const measure::Operands> operands;
  };
  // Makes room for operands that it does not hold. It is an error if they do not fit.
  [[nodiscard]] Result<State> offer(const Offer& offer);
  // Takes the next part of operands that were offered. If all are there and are not those of the
  // hash, it is an error, and they are forgotten.
  [[nodiscard]] Result<State> add(const Piece& piece);

  [[nodiscard]] int64_t most_bytes() const { return most_bytes_; }
  [[nodiscard]] int64_t held_bytes() const;

 private:
  struct Entry {
    Digest digest;
    std::shared_ptr<const measure::Operands> operands;
    int64_t have = 0;
    [[nodiscard]] int64_t total() const { return operands->layout().total_bytes; }
    [[nodiscard]] State state() const { return {have, have == total(), operands}; }
  };
  using Entries = std::list<Entry>;  // used longest ago first
  [[nodiscard]] Entries::iterator find(const Digest& digest);
  [[nodiscard]] Status make_room(int64_t bytes);

  const int64_t most_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;
  int64_t held_bytes_ = 0;
};

}  // namespace hone::remote
