// base/allocation.h - allocates memory for data, and says what failed when there is none: the
// message names what the thread was working on, how much it asked for and the bound of the process
// (memory_bound.h). The new-handler decides what happens then, as for operator new; that of the
// command line ends the process with the message.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace hone {

// Names the purpose of what this thread allocates during the object's lifetime, such as "node
// 'conv1' (Conv)". The message names the innermost purpose.
class AllocatesFor {
 public:
  explicit AllocatesFor(std::string_view purpose);
  AllocatesFor(const AllocatesFor&) = delete;
  AllocatesFor& operator=(const AllocatesFor&) = delete;
  ~AllocatesFor();

 private:
  friend std::string_view out_of_memory_message();
  std::string purpose_;
  const AllocatesFor* outer_;
};

// Reports that an allocation of `bytes` (0: unknown) failed: it calls the new-handler and throws
// std::bad_alloc if that returns or if there is none.
[[noreturn]] void fail_allocation(int64_t bytes);
// Returns the message of this thread's failed allocation, such as "out of memory for node 'a'
// (Conv): ...". The new-handler may call it, as it allocates nothing. The text stays valid until
// the thread calls it again.
[[nodiscard]] std::string_view out_of_memory_message();

inline constexpr int64_t kDataAlignment = 64;  // a cache line, and the widest vector
// Returns memory that std::free() frees. Its size is `bytes` rounded up to a multiple of the
// alignment. A request above the bound of the process fails without asking the system.
[[nodiscard]] void* allocate_aligned(int64_t bytes);
// Starts a thread. That the system has no memory for its stack is a failed allocation.
[[nodiscard]] std::thread start_thread(std::function<void()> work);

}  // namespace hone
