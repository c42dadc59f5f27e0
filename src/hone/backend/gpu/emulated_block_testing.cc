#include "hone/backend/gpu/emulated_block_testing.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "hone/base/assert.h"

namespace hone::backend::gpu::emulated {
namespace {

constexpr size_t kPage = 4096;
Block* running = nullptr;  // whose services are called

}  // namespace

Block::Block(SharedMemory& shared, GlobalMemory& global, char* dynamic_shared, int threads,
             size_t stack_bytes)
    : shared_(shared),
      global_(global),
      threads_(static_cast<size_t>(threads)),
      warp_epochs_((static_cast<size_t>(threads) + kWarp - 1) / kWarp, 0),
      stack_bytes_(stack_bytes) {
  HONE_ASSERT(running == nullptr, "two blocks run at a time");
  HONE_ASSERT(stack_bytes % kPage == 0, "stacks are whole pages");
  void* const memory = mmap(nullptr, threads_.size() * stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HONE_ASSERT(memory != MAP_FAILED, "there is no memory for stacks");
  stacks_ = static_cast<char*>(memory);
  running = this;
  services_.stacks = stacks_;
  services_.stacks_bytes = threads_.size() * stack_bytes;
  services_.dynamic_shared = dynamic_shared;
  services_.access = [](const void* p, unsigned bytes, bool write) {
    running->touch(p, bytes, write);
  };
  services_.fail = [](const char* what, unsigned line) {
    running->fail(fmt::format("{} in line {}", what, line));
  };
  services_.block_barrier = [](int line) {
    running->self().state = State::kAtBarrier;
    running->self().line = line;
    running->leave();
  };
  services_.meet = [](unsigned mask, Together together, void* own, bool barrier, int line) {
    running->meet(mask, together, own, barrier, line);
  };
  services_.shared_address = [](const void* pointer, int line) {
    const unsigned address = running->shared_.address(pointer);
    if (address == 0) running->fail(fmt::format("no address of shared memory in line {}", line));
    return address;
  };
  services_.shared_pointer = [](unsigned address, int line) {
    char* const pointer = running->shared_.pointer(address);
    if (pointer == nullptr)
      running->fail(fmt::format("no address of shared memory in line {}", line));
    return pointer;
  };
  services_.copy = [](unsigned to, const void* from, unsigned bytes, unsigned there, int line) {
    running->copy(to, from, bytes, there, line);
  };
  services_.commit_copies = [] {
    Thread& own = running->self();
    own.groups.push_back(std::move(own.issued));
    own.issued.clear();
  };
  services_.wait_copies = [](unsigned newest) { running->wait_copies(newest); };
}

Block::~Block() {
  munmap(stacks_, threads_.size() * stack_bytes_);
  running = nullptr;
}

void Block::enter() {
  running->kernel_(running->arguments_);
  Thread& own = running->self();
  const auto has = [](const std::vector<Copy>& copies) { return !copies.empty(); };
  if (has(own.issued) || std::any_of(own.groups.begin(), own.groups.end(), has))
    running->fail("the thread ends before asynchronous copies have arrived");
  own.state = State::kEnded;
  running->leave();
}

void Block::prepare(unsigned block) {
  services_.block = {block, 0, 0};
  ++epoch_;
  error_.clear();
  shared_.poison();
  for (size_t t = 0; t < threads_.size(); ++t) {
    Thread& thread = threads_[t];
    thread.state = State::kReady;
    thread.issued.clear();
    thread.groups.clear();
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stacks_ + t * stack_bytes_;
    thread.context.uc_stack.ss_size = stack_bytes_;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, &Block::enter, 0);
  }
}

std::string Block::run(KernelEntry kernel, const void* const* arguments, unsigned block,
                       const Schedule& schedule) {
  kernel_ = kernel;
  arguments_ = arguments;
  schedule_ = schedule;
  prepare(block);
  while (true) {
    bool ran = false;
    for (size_t i = 0; i < threads_.size(); ++i) {
      const size_t t = schedule_.last_first ? threads_.size() - 1 - i : i;
      if (threads_[t].state != State::kReady) continue;
      ran = true;
      switch_to(t);
      if (!error_.empty()) return error_;
    }
    if (ran) continue;
    const bool ended = std::all_of(threads_.begin(), threads_.end(),
                                   [](const Thread& t) { return t.state == State::kEnded; });
    if (ended) return "";
    if (std::string wrong = release_barrier(); !wrong.empty()) return wrong;
  }
}

std::string Block::release_barrier() {
  for (size_t t = 0; t < threads_.size(); ++t) {
    const Thread& thread = threads_[t];
    if (thread.state == threads_[0].state && thread.state == State::kAtBarrier &&
        thread.line == threads_[0].line)
      continue;
    const auto place = [](const Thread& x) {
      return x.state == State::kEnded       ? "has ended"
             : x.state == State::kAtBarrier ? fmt::format("waits at the barrier of line {}", x.line)
                                            : fmt::format("waits for the warp in line {}", x.line);
    };
    return fmt::format("block {}: thread 0 {}, thread {} {}", services_.block.x, place(threads_[0]),
                       t, place(thread));
  }
  ++epoch_;
  for (Thread& thread : threads_) thread.state = State::kReady;
  return "";
}

void Block::switch_to(size_t thread) {
  services_.thread = {static_cast<unsigned>(thread), 0, 0};
  swapcontext(&loop_, &threads_[thread].context);
}
void Block::leave() { swapcontext(&self().context, &loop_); }

// The stack is never left: nothing on it may own memory.
void Block::fail(std::string what) {
  what.insert(0, fmt::format("block {}, thread {}: ", services_.block.x, services_.thread.x));
  error_ = std::move(what);
  leave();
  HONE_ASSERT(false, "a thread with an error goes on");
}

Moment Block::now() const {
  const unsigned thread = services_.thread.x;
  return {thread, epoch_, warp_epochs_[thread / kWarp]};
}

void Block::touch(const void* p, size_t bytes, bool write) {
  std::string wrong =
      shared_.has(p) ? shared_.touch(p, bytes, write, now()) : global_.touch(p, bytes, write);
  if (!wrong.empty()) fail(std::move(wrong));
}

bool Block::all_came(unsigned mask, const Thread& last) const {
  const size_t first = services_.thread.x / kWarp * kWarp;
  for (size_t lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0 || first + lane >= threads_.size()) continue;
    const Thread& thread = threads_[first + lane];
    if (thread.state != State::kMeeting || thread.mask != mask || thread.line != last.line ||
        thread.together != last.together)
      return false;
  }
  return true;
}

void Block::meet(unsigned mask, Together together, void* own, bool barrier, int line) {
  Thread& thread = self();
  const unsigned id = services_.thread.x;
  if ((mask >> id % kWarp & 1) == 0) fail(fmt::format("a lane that its mask lacks, line {}", line));
  thread.state = State::kMeeting;
  thread.line = line;
  thread.mask = mask;
  thread.together = together;
  thread.own = own;
  if (!all_came(mask, thread)) return leave();
  void* lanes[kWarp] = {};
  const size_t first = id / kWarp * kWarp;
  for (size_t lane = 0; lane < kWarp && first + lane < threads_.size(); ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    lanes[lane] = threads_[first + lane].own;
    threads_[first + lane].state = State::kReady;
  }
  if (barrier && mask == kAllLanes) ++warp_epochs_[id / kWarp];
  together(lanes);
}

void Block::copy(unsigned to, const void* from, unsigned bytes, unsigned there, int line) {
  const Copy made = {services_.shared_pointer(to, line), from, bytes, there};
  if (there > 0) touch(from, there, false);
  touch(made.to, bytes, true);
  if (schedule_.late_copies) {
    std::memset(made.to, 0xff, bytes);
  } else {
    arrive(made);
  }
  self().issued.push_back(made);
}

void Block::arrive(const Copy& copy) {
  if (copy.there > 0) std::memcpy(copy.to, copy.from, copy.there);
  std::memset(copy.to + copy.there, 0, copy.bytes - copy.there);
}

// Until a copy is waited for, it may write what it copies to.
void Block::wait_copies(unsigned newest) {
  Thread& own = self();
  while (own.groups.size() > newest) {
    for (const Copy& copy : own.groups.front()) {
      touch(copy.to, copy.bytes, true);
      if (schedule_.late_copies) arrive(copy);
    }
    own.groups.pop_front();
  }
}

}  // namespace hone::backend::gpu::emulated
