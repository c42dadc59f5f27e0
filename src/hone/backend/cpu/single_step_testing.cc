#include "hone/backend/cpu/single_step_testing.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#if defined(__x86_64__)
#include <ucontext.h>
#endif

namespace hone::backend::cpu {
namespace {

#if defined(__x86_64__)
constexpr greg_t kTrapFlag = 0x100;       // in the flags: a trap follows the next instruction
constexpr int64_t kMostBefore = 100'000;  // instructions until the kernel begins

// The child that runs the kernel notes here what it finds, in memory that the parent shares.
struct Steps {
  uint64_t entry = 0, end = 0, last = 0;  // addresses; there is an end once the kernel has begun
  int64_t before = 0, executed = 0, limit = 0;
  bool ended = false;
};
Steps* child_steps = nullptr;

// Handles the trap in front of each instruction.
void count_instruction(int /*signal*/, siginfo_t* /*info*/, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto place = static_cast<uint64_t>(registers[REG_RIP]);
  Steps& steps = *child_steps;
  if (steps.end == 0 && place == steps.entry)
    std::memcpy(&steps.end, reinterpret_cast<void*>(registers[REG_RSP]), sizeof steps.end);
  if (steps.end == 0) {
    ++steps.before;
  } else if (place == steps.end) {
    steps.ended = true;
  } else {
    // A gather or a scatter that met a page which was not there yet stops once more at its place.
    steps.executed += place != steps.last ? 1 : 0;
    steps.last = place;
  }
  const bool more = !steps.ended && steps.executed <= steps.limit && steps.before <= kMostBefore;
  if (!more && !steps.ended) _exit(2);  // it may run for ever
  registers[REG_EFL] = more ? registers[REG_EFL] | kTrapFlag : registers[REG_EFL] & ~kTrapFlag;
}

bool step_from_here(Steps& steps) {
  child_steps = &steps;
  struct sigaction action = {};
  action.sa_sigaction = count_instruction;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGTRAP, &action, nullptr) == 0 && raise(SIGTRAP) == 0;
}
#endif

}  // namespace

std::optional<int64_t> count_by_steps(hone_kernel kernel, std::span<Tensor> args,
                                      int64_t scratch_bytes, int64_t first_tile, int64_t last_tile,
                                      int64_t limit) {
#if defined(__x86_64__)
  void* shared =
      mmap(nullptr, sizeof(Steps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::nullopt;
  auto* steps = new (shared) Steps{.entry = reinterpret_cast<uint64_t>(kernel), .limit = limit};
  std::vector<void*> pointers;
  for (Tensor& t : args) pointers.push_back(t.data());
  void* scratch = std::aligned_alloc(64, static_cast<size_t>(scratch_bytes + 64) / 64 * 64);
  const pid_t child = fork();
  if (child == 0) {
    if (!step_from_here(*steps)) _exit(1);
    kernel(pointers.data(), scratch, first_tile, last_tile, 0);
    _exit(0);
  }
  std::free(scratch);
  int status = 0;
  const bool ran = child > 0 && waitpid(child, &status, 0) == child;
  const Steps found = *steps;
  munmap(shared, sizeof(Steps));
  if (!ran || found.end == 0) return std::nullopt;
  return found.ended ? found.executed : -1;
#else
  return std::nullopt;
#endif
}

}  // namespace hone::backend::cpu
