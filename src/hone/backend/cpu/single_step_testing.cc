#include "hone/backend/cpu/single_step_testing.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

namespace hone::backend::cpu {
namespace {

#if defined(__x86_64__)
uint64_t place_of(pid_t child) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  return registers.rip;
}
uint64_t return_place(pid_t child) {
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  return static_cast<uint64_t>(
      ptrace(PTRACE_PEEKDATA, child, reinterpret_cast<void*>(registers.rsp), nullptr));
}

// Lets the child execute one instruction; returns whether it still lives.
bool step(pid_t child) {
  int status = 0;
  return ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 &&
         waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

std::optional<int64_t> trace(pid_t child, uint64_t entry, int64_t limit) {
  constexpr int64_t kMostBefore = 100'000;  // instructions until the kernel begins
  int64_t before = 0;
  while (place_of(child) != entry) {
    if (++before > kMostBefore || !step(child)) return std::nullopt;
  }
  const uint64_t end = return_place(child);
  int64_t executed = 0;
  // A gather or a scatter that met a page which was not there yet stops once more at its place.
  for (uint64_t place = entry, last = 0; place != end; place = place_of(child)) {
    executed += place != last ? 1 : 0;
    last = place;
    if (executed > limit || !step(child)) return -1;
  }
  return executed;
}
#endif

}  // namespace

std::optional<int64_t> count_by_steps(hone_kernel kernel, std::span<Tensor> args,
                                      int64_t scratch_bytes, int64_t first_tile, int64_t last_tile,
                                      int64_t limit) {
#if defined(__x86_64__)
  std::vector<void*> pointers;
  for (Tensor& t : args) pointers.push_back(t.data());
  void* scratch = std::aligned_alloc(64, static_cast<size_t>(scratch_bytes + 64) / 64 * 64);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    kernel(pointers.data(), scratch, first_tile, last_tile, 0);
    _exit(0);
  }
  std::free(scratch);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return std::nullopt;
  const std::optional<int64_t> executed = trace(child, reinterpret_cast<uint64_t>(kernel), limit);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return executed;
#else
  return std::nullopt;
#endif
}

}  // namespace hone::backend::cpu
