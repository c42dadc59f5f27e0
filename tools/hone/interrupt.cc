#include "interrupt.h"

#include <csignal>

namespace hone::tool {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void on_signal(int) { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>& listen_for_interrupt() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};  // the terminal was closed; under nohup it stays ignored
  sigaction(SIGHUP, nullptr, &hangup);
  action.sa_flags = SA_RESTART;  // shell and kernel both say it: the second one does not kill
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  return interrupted;
}

}  // namespace hone::tool
