#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "fuzz.h"

namespace {

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
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, on_crash);
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    const auto end = fmt::format_to_n(message, sizeof(message), "failed with seed {}\n", seed).out;
    message_size = static_cast<size_t>(end - message);
    hone::Rng rng(seed);
    const std::string input = hone::fuzz::make_input(rng);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  fmt::print("{} runs from seed {}\n", runs, first);
  return 0;
}
