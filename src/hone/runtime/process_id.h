// runtime/process_id.h - says which process this is, as getpid() does, without a system call in
// each run of a model: that takes a tenth of a microsecond or more, as long as a small kernel. The
// number lies in memory that the kernel clears in a forked child, which then asks again.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace hone::runtime {

class ProcessId {
 public:
  // Takes a page of memory, which end() gives back. Without it, or where the kernel does not clear
  // it (before Linux 4.14, some emulators), get() is getpid().
  void begin();
  void end();
  // Any threads may call it at the same time.
  [[nodiscard]] pid_t get() const;

 private:
  std::atomic<pid_t>* known_ = nullptr;  // 0: nobody has asked in this process
};

}  // namespace hone::runtime
