#include "hone/ir/gpu/race_detector.h"

#include <fmt/format.h>

#include <algorithm>

#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/printer.h"
#include "hone/tensor/tensor.h"

namespace hone::ir {
namespace {

std::string name_of(const Actor& actor) {
  switch (actor.kind) {
    case Actor::kThread: return fmt::format("thread {}", actor.number);
    case Actor::kWarp: return fmt::format("warp {}", actor.number / kWarpThreads);
    default: return "all threads";
  }
}

// The statement's text, in one line and without what is inside.
std::string text_of(const StmtNode* s) {
  if (s == nullptr) return "?";
  std::string text = print(Stmt(Stmt(), s));
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

int64_t warp_of(const Actor& actor) { return actor.number / kWarpThreads; }

}  // namespace

RaceDetector::RaceDetector(const Bytecode& code)
    : code_(code), tracking_(code.buffers.size()), shadows_(code.buffers.size()) {
  for (const Access& access : code.accesses) {
    const Scope scope = code.buffers[access.buffer]->scope;
    // Each thread has its own elements, so there are only copies to wait for.
    if (scope == Scope::kFragment && access.async) tracking_[access.buffer] = Tracking::kFragment;
    if (scope == Scope::kShared) tracking_[access.buffer] = Tracking::kShared;
    // What is never written cannot race.
    if (scope == Scope::kGlobal && access.is_store) tracking_[access.buffer] = Tracking::kGlobal;
  }
  for (size_t b = 0; b < tracking_.size(); ++b) {
    if (tracking_[b] != Tracking::kNone) shadows_[b].resize(code.buffers[b]->num_elements());
  }
  begin_roles(0);
  known_[kCopies][kCopies] = 1;  // no role knows of the first copy from the beginning
}

void RaceDetector::begin_phase() {
  begin_block();
  first_block_ = block_;
}

// Copies that the last block did not wait for ended with it.
void RaceDetector::begin_block() {
  ++block_;
  changed_ = true;
  for (std::vector<Unfinished>& of_role : unfinished_) {
    for (const Unfinished& u : of_role) {
      Shadow& shadow = shadows_[u.buffer][u.element];
      shadow.unfinished_stores = shadow.unfinished_loads = 0;
    }
    of_role.clear();
  }
}

// The block meets before roles begin and after they have ended, so each knows what all did; only
// copies may still be under way.
void RaceDetector::begin_roles(size_t count) {
  const size_t roles = std::max(known_.size(), count + kFirstRole);
  role_ = kBlock;
  changed_ = true;
  epochs_.resize(roles);
  groups_.resize(roles);
  unfinished_.resize(roles);
  known_.resize(roles);
  Clocks all(roles);
  for (size_t r = 0; r < roles; ++r) {
    if (r != kCopies) join(all, known_[r]);
  }
  for (size_t r = 0; r < roles; ++r) {
    if (r == kCopies) continue;
    known_[r] = all;
    ++known_[r][r];
    ++epochs_[r];
  }
  known_[kCopies].resize(roles);
}

void RaceDetector::end_roles() { begin_roles(0); }

void RaceDetector::barrier() {
  ++epochs_[role_];
  changed_ = true;
}

void RaceDetector::warp_barrier(int64_t warp) {
  if (static_cast<size_t>(warp) >= warp_epochs_.size()) warp_epochs_.resize(warp + 1);
  ++warp_epochs_[warp];
  changed_ = true;
}

void RaceDetector::wait(int64_t unfinished) {
  std::erase_if(unfinished_[role_], [&](const Unfinished& u) {
    if (u.group > groups_[role_] - unfinished) return false;
    Shadow& shadow = shadows_[u.buffer][u.element];
    Stamp stamp = now();
    stamp.access = u.stamp.access;
    stamp.actor = u.stamp.actor;
    if (static_cast<size_t>(warp_of(stamp.actor)) < warp_epochs_.size())
      stamp.warp_epoch = warp_epochs_[warp_of(stamp.actor)];
    if (code_.accesses[stamp.access].is_store) {
      --shadow.unfinished_stores;
      shadow.writer = stamp;
    } else {
      --shadow.unfinished_loads;
      add_reader(shadow, stamp, tracking_[u.buffer]);
    }
    return true;
  });
}

void RaceDetector::join(Clocks& a, const Clocks& b) {
  a.resize(std::max(a.size(), b.size()));
  for (size_t i = 0; i < b.size(); ++i) a[i] = std::max(a[i], b[i]);
}

void RaceDetector::arrive(int32_t signal, int64_t element, bool of_copy, bool completes) {
  Signal& s = signals_[{signal, element}];
  if (of_copy) {
    Clocks done(known_.size());
    done[kCopies] = known_[kCopies][kCopies]++;
    join(s.arriving, done);
  } else {
    join(s.arriving, known_[role_]);
    ++known_[role_][role_];
    changed_ = true;
  }
  if (!completes) return;
  s.complete = s.arriving;
  s.arriving.clear();
}

void RaceDetector::await(int32_t signal, int64_t element) {
  join(known_[role_], signals_[{signal, element}].complete);
}

const RaceDetector::Stamp& RaceDetector::now() {
  if (!changed_) return now_;
  changed_ = false;
  const auto warp = static_cast<size_t>(warp_of(now_.actor));
  now_.role = static_cast<uint32_t>(role_);
  now_.block = block_;
  now_.epoch = epochs_[role_];
  now_.warp_epoch = warp < warp_epochs_.size() ? warp_epochs_[warp] : 0;
  now_.clock = known_[role_][role_];
  return now_;
}

bool RaceDetector::ordered(const Stamp& before, const Stamp& now, Tracking tracking) const {
  if (before.access < 0 || before.block < first_block_) return true;
  // Blocks have shared memory of their own.
  if (before.block != now.block) return tracking != Tracking::kGlobal;
  const bool are_threads = before.actor.kind == Actor::kThread && now.actor.kind == Actor::kThread;
  if (before.role != now.role) return known_[now.role][before.role] >= before.clock;
  if (before.epoch != now.epoch) return true;
  if (are_threads && before.actor == now.actor) return true;
  // A warp, or all threads, give each element that a statement stores to one of them in all
  // iterations; that one reads the element's old value, too.
  const Access &first = code_.accesses[before.access], &second = code_.accesses[now.access];
  if (!are_threads && before.actor == now.actor && first.source == second.source &&
      first.of_stored && second.of_stored)
    return true;
  const bool same_warp = before.actor.kind != Actor::kGroup && now.actor.kind != Actor::kGroup &&
                         warp_of(before.actor) == warp_of(now.actor);
  return same_warp && before.warp_epoch != now.warp_epoch;
}

bool RaceDetector::conflict(const Stamp& before, const Stamp& now, int64_t element) {
  const Access &first = code_.accesses[before.access], &second = code_.accesses[now.access];
  const Buffer& buffer = *code_.buffers[second.buffer];
  std::vector<int64_t> index(buffer.shape.size());
  for (size_t d = index.size(); d-- > 0; element /= buffer.shape[d])
    index[d] = element % buffer.shape[d];
  const bool other_block = before.block != now.block;
  error_ = fmt::format(
      "race for {} at {}: the {} by {} in '{}' and the {} by {}{} in '{}' are in no order",
      buffer.name, to_string(index), first.is_store ? "store" : "load", name_of(before.actor),
      text_of(first.source), second.is_store ? "store" : "load", name_of(now.actor),
      other_block ? " of another block" : "", text_of(second.source));
  return false;
}

// Keeps readers that a later store may race with. Of one epoch two are enough if they are of
// different warps (or blocks), as any other thread is in another warp than one of them. What is
// read again in the same way, as a warp reads an operand for each column of a product, is kept
// once.
void RaceDetector::add_reader(Shadow& shadow, const Stamp& stamp, Tracking tracking) const {
  if (tracking == Tracking::kFragment) return;
  if (!shadow.readers.empty() && shadow.readers.back() == stamp) return;
  std::erase_if(shadow.readers, [&](const Stamp& r) { return ordered(r, stamp, tracking); });
  const Stamp *same_role = nullptr, *other_block = nullptr;
  for (const Stamp& r : shadow.readers) {
    const Stamp*& first = r.block != stamp.block ? other_block : same_role;
    if (r.block == stamp.block && r.role != stamp.role) continue;
    const bool differ =
        first != nullptr && (r.block != stamp.block ? r.block != first->block
                                                    : warp_of(r.actor) != warp_of(first->actor));
    if (differ) return;
    first = &r;
  }
  shadow.readers.push_back(stamp);
}

bool RaceDetector::access(int32_t number, int64_t element) {
  const Access& access = code_.accesses[number];
  const Tracking tracking = tracking_[access.buffer];
  if (tracking == Tracking::kNone) return true;
  Shadow& shadow = shadows_[access.buffer][element];
  Stamp stamp = now();
  stamp.access = number;
  if (access.of_copy) {
    stamp.role = kCopies;
    stamp.clock = known_[kCopies][kCopies];
  }
  const bool noted = !shadow.readers.empty() && shadow.readers.back() == stamp;
  if (noted && !access.is_store && !access.async && shadow.unfinished_stores == 0) return true;
  const bool chained = access.async && tracking == Tracking::kFragment;
  if (shadow.unfinished_stores > 0 && !chained) {
    conflict(shadow.writer, stamp, element);
    error_ += ": the first one was not waited for";
    return false;
  }
  if (access.is_store && shadow.unfinished_loads > 0 && !chained) {
    conflict(shadow.readers.empty() ? stamp : shadow.readers.back(), stamp, element);
    error_ += ": the first one was not waited for";
    return false;
  }
  if (tracking != Tracking::kFragment) {
    Stamp issued = stamp;
    issued.role = static_cast<uint32_t>(role_);
    if (!ordered(shadow.writer, issued, tracking)) return conflict(shadow.writer, stamp, element);
    if (access.is_store) {
      for (const Stamp& reader : shadow.readers) {
        if (!ordered(reader, issued, tracking)) return conflict(reader, stamp, element);
      }
    }
  }
  if (access.is_store) {
    shadow.writer = stamp;
    shadow.readers.clear();
  } else {
    add_reader(shadow, stamp, tracking);
  }
  if (!access.async || (!access.is_store && tracking == Tracking::kGlobal)) return true;
  ++(access.is_store ? shadow.unfinished_stores : shadow.unfinished_loads);
  unfinished_[role_].push_back({access.buffer, element, stamp, groups_[role_] + 1});
  return true;
}

}  // namespace hone::ir
