#include "interrupt.h"

#include <semaphore.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "hone/base/temporary_name.h"

namespace hone::tool {
namespace {

std::atomic<bool> interrupted = false, ends_itself = false;
std::atomic<int> signal_number = SIGINT;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "set in a signal handler");
std::atomic<const char*> message = "interrupted; nothing was written";
sem_t arrived;

void on_signal(int number) {
  const int error_number = errno;
  if (!interrupted.exchange(true)) signal_number = number;
  sem_post(&arrived);
  errno = error_number;
}

void watch() {
  while (sem_wait(&arrived) != 0) {
  }
  timespec left = {0, static_cast<long>(kGraceSeconds * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  if (!ends_itself) end_process(message.load(), interrupt_exit_code());
}

bool begin() {
  sem_init(&arrived, 0, 0);
  try {
    std::thread(watch).detach();
  } catch (const std::system_error&) {
    // No thread is to be had: stages that look at the flag end, and a second signal kills.
  }
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
  return true;
}

}  // namespace

const std::atomic<bool>& listen_for_interrupt() {
  static const bool begun = begin();
  (void)begun;
  return interrupted;
}

void set_interrupt_message(std::string_view text) {
  static std::string kept;
  kept = text;
  message = kept.c_str();
}

void end_process(std::string_view text, int exit_code) {
  // Memory may be what there is no more of.
  for (const std::string_view part : {std::string_view("hone: "), text, std::string_view("\n")}) {
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  }
  std::set_new_handler(nullptr);
  try {
    remove_own_temporaries();
  } catch (const std::exception&) {
    // The next command that makes temporary files there removes what is left.
  }
  _exit(exit_code);
}

void finish_when_interrupted() { ends_itself = true; }

int interrupt_exit_code() { return 128 + (signal_number == SIGTERM ? SIGTERM : SIGINT); }

}  // namespace hone::tool
