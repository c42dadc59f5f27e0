#include "hone/runtime/process_id.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace hone::runtime {
namespace {

constexpr size_t kBytes = sizeof(std::atomic<pid_t>);  // the kernel rounds up to a page

#ifdef MADV_WIPEONFORK
bool is_cleared_on_fork(void* page) {
  // Some emulators accept all advice, even such as does not exist, and follow none.
  constexpr int kNoAdvice = -1;
  return madvise(page, kBytes, kNoAdvice) != 0 && madvise(page, kBytes, MADV_WIPEONFORK) == 0;
}
#else
bool is_cleared_on_fork(void*) { return false; }
#endif

}  // namespace

void ProcessId::begin() {
  void* page = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (is_cleared_on_fork(page))
    known_ = new (page) std::atomic<pid_t>(0);
  else
    munmap(page, kBytes);
}

void ProcessId::end() {
  if (known_ != nullptr) munmap(known_, kBytes);
  known_ = nullptr;
}

pid_t ProcessId::get() const {
  if (known_ == nullptr) return getpid();
  pid_t self = known_->load(std::memory_order_relaxed);
  if (self == 0) {
    self = getpid();
    known_->store(self, std::memory_order_relaxed);
  }
  return self;
}

}  // namespace hone::runtime
