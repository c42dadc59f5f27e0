// ir/gpu/race_detector.h - finds accesses to one element by different threads that nothing puts in
// order, while the interpreter runs a program.
//
// Each element remembers who wrote it last and who read it since. Threads of a block are put in
// order by barriers, which begin a new epoch, those of a warp by barriers of the warp, and roles by
// signals: a vector of clocks says how far each role is known to have come (FastTrack, Flanagan and
// Freund 2009). Blocks of one phase are in no order; phases are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hone/ir/bytecode.h"

namespace hone::ir {

class RaceDetector {
 public:
  explicit RaceDetector(const Bytecode& code);

  // ---- order ----
  void begin_phase();
  void begin_block();
  void set_actor(Actor actor) { now_.actor = actor, changed_ = true; }
  [[nodiscard]] Actor actor() const { return now_.actor; }
  void barrier();
  void warp_barrier(int64_t warp);
  void commit() { ++groups_[role_]; }
  void wait(int64_t unfinished);
  // `role` runs from now on; -1: the block as a whole.
  void begin_roles(size_t count);
  void set_role(int role) {
    role_ = role < 0 ? kBlock : static_cast<size_t>(role) + kFirstRole;
    changed_ = true;
  }
  void end_roles();
  // An arrival at a signal, of the role or of a copy that it started; `completes`: a phase ends.
  void arrive(int32_t signal, int64_t element, bool of_copy, bool completes);
  void await(int32_t signal, int64_t element);

  // Notes an access; returns false if it races, and error() says with what.
  bool access(int32_t number, int64_t element);
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  using Clocks = std::vector<uint32_t>;  // by role
  // Who accessed an element, and when. There are as many as elements, so they are small; no run of
  // the interpreter is long enough for its counters to come round.
  struct Stamp {
    Actor actor;
    int32_t access = -1;  // none
    uint32_t role = 0, block = 0, epoch = 0, warp_epoch = 0, clock = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Shadow {
    Stamp writer;
    std::vector<Stamp> readers;
    int unfinished_stores = 0, unfinished_loads = 0;
  };
  enum class Tracking : uint8_t { kNone, kFragment, kShared, kGlobal };
  struct Unfinished {
    int32_t buffer;
    int64_t element;
    Stamp stamp;
    int64_t group;
  };
  struct Signal {
    Clocks arriving, complete;
  };

  [[nodiscard]] const Stamp& now();  // its access is missing
  [[nodiscard]] bool ordered(const Stamp& before, const Stamp& now, Tracking tracking) const;
  bool conflict(const Stamp& before, const Stamp& now, int64_t element);
  void add_reader(Shadow& shadow, const Stamp& stamp, Tracking tracking) const;
  static void join(Clocks& a, const Clocks& b);

  const Bytecode& code_;
  std::vector<Tracking> tracking_;            // how each buffer is watched
  std::vector<std::vector<Shadow>> shadows_;  // what is known of each element
  Stamp now_;
  bool changed_ = true;  // now_ is to be made anew, but for its actor
  // The block as a whole and the copies of boxes are roles, too.
  static constexpr size_t kBlock = 0, kCopies = 1, kFirstRole = 2;
  size_t role_ = kBlock;
  uint32_t block_ = 0, first_block_ = 0;  // the latter of the phase
  std::vector<uint32_t> epochs_;          // by role
  std::vector<int64_t> groups_;           // by role
  std::vector<uint32_t> warp_epochs_;
  std::vector<Clocks> known_;  // by role: how far the others are known to have come
  std::vector<std::vector<Unfinished>> unfinished_;  // by role
  std::map<std::pair<int32_t, int64_t>, Signal> signals_;
  std::string error_;
};

}  // namespace hone::ir
