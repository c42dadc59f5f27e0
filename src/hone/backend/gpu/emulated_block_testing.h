// backend/gpu/emulated_block_testing.h - for tests: the threads of a block, one after the other on
// this thread of the machine. Each has a stack of its own and runs until it waits for others.
//
// The emulation decides what CUDA leaves open against the kernel: threads run in an order that can
// be turned round, and an asynchronous copy arrives when it is waited for and no sooner, or at
// once. A barrier that not all threads reach, lanes of a warp that do not come to what the warp
// does together, and copies that nobody waited for are errors.
#pragma once

#include <ucontext.h>

#include <deque>
#include <string>
#include <vector>

#include "hone/backend/gpu/emulated_abi_testing.h"
#include "hone/backend/gpu/emulated_memory_testing.h"

namespace hone::backend::gpu::emulated {

struct Schedule {
  bool late_copies = true;  // else asynchronous copies arrive when they are made
  bool last_first = false;  // the order of the threads
};

using KernelEntry = void (*)(const void* const* arguments);

class Block {
 public:
  // Runs on the memory with stacks of so many bytes. One block runs at a time.
  Block(SharedMemory& shared, GlobalMemory& global, char* dynamic_shared, int threads,
        size_t stack_bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  [[nodiscard]] Services& services() { return services_; }
  // Returns the error of the run, or "".
  [[nodiscard]] std::string run(KernelEntry kernel, const void* const* arguments, unsigned block,
                                const Schedule& schedule);

 private:
  enum class State { kReady, kAtBarrier, kMeeting, kEnded };
  struct Copy {
    char* to;
    const void* from;
    unsigned bytes, there;
  };
  struct Thread {
    ucontext_t context;
    State state = State::kReady;
    int line = 0;  // where it waits
    unsigned mask = 0;
    Together together = nullptr;
    void* own = nullptr;
    std::vector<Copy> issued;
    std::deque<std::vector<Copy>> groups;
  };

  static void enter();
  void prepare(unsigned block);
  [[nodiscard]] std::string release_barrier();
  void switch_to(size_t thread);
  void leave();  // back to the loop over threads
  [[noreturn]] void fail(std::string what);
  [[nodiscard]] Thread& self() { return threads_[services_.thread.x]; }
  [[nodiscard]] Moment now() const;
  void touch(const void* p, size_t bytes, bool write);
  void meet(unsigned mask, Together together, void* own, bool barrier, int line);
  [[nodiscard]] bool all_came(unsigned mask, const Thread& last) const;
  void copy(unsigned to, const void* from, unsigned bytes, unsigned there, int line);
  void arrive(const Copy& copy);
  void wait_copies(unsigned newest);

  SharedMemory& shared_;
  GlobalMemory& global_;
  Services services_;
  std::vector<Thread> threads_;
  std::vector<uint32_t> warp_epochs_;
  uint32_t epoch_ = 1;
  char* stacks_ = nullptr;
  size_t stack_bytes_;
  ucontext_t loop_ = {};
  KernelEntry kernel_ = nullptr;
  const void* const* arguments_ = nullptr;
  Schedule schedule_;
  std::string error_;
};

}  // namespace hone::backend::gpu::emulated
