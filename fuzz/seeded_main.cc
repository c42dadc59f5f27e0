#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "hone/base/file.h"
#include "hone/base/sanitizers.h"

#include "fuzz.h"

#ifdef HONE_SANITIZER
extern "C" const char* __asan_default_options() {  // NOLINT: a name that the library calls
  return "abort_on_error=1:allocator_may_return_null=0:max_allocation_size_mb=2048:"
         "hard_rss_limit_mb=4096";
}
extern "C" const char* __ubsan_default_options() {  // NOLINT
  return "abort_on_error=1:print_stacktrace=1";
}
#endif

__attribute__((weak)) std::string hone::fuzz::verdict(uint64_t) { return ""; }

namespace {

using hone::kSanitized;

constexpr time_t kSecondsPerRun = kSanitized ? 60 : 20;  // of the processor; longer is endless
constexpr rlim_t kMemoryLimit = 2ULL << 30;              // bytes of addresses

char message[64] = "";  // what the handler below prints: no allocation after a crash
size_t message_size = 0;

void on_crash(int signal) {
  if (write(STDERR_FILENO, message, message_size) < 0) _exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t runs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGPROF})
    std::signal(signal, on_crash);
  const rlimit limit = {kMemoryLimit, kMemoryLimit};
  if (!kSanitized && setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  const itimerval time_limit = {{0, 0}, {kSecondsPerRun, 0}};
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    const auto end = fmt::format_to_n(message, sizeof(message), "failed with seed {}\n", seed).out;
    message_size = static_cast<size_t>(end - message);
    setitimer(ITIMER_PROF, &time_limit, nullptr);
    hone::Rng rng(seed);
    const std::string input = hone::fuzz::make_input(rng);
    if (argc > 3 && !hone::write_file_atomic(argv[3], input).ok()) return 1;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  const std::string wrong = hone::fuzz::verdict(runs);
  fmt::print("{} runs from seed {}\n{}", runs, first, wrong);
  return wrong.empty() ? 0 : 1;
}
