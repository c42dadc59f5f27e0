#include "hone/base/worker_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "hone/base/clock.h"
#include "hone/base/sanitizers.h"

extern char** environ;

namespace hone {
namespace {

constexpr int kWorkerFd = 3;

int to_ms(double seconds) { return static_cast<int>(std::min(seconds, 1e6) * 1000); }

std::string death_text(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("the worker was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("the worker ended with status {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<WorkerChild>> WorkerChild::start(const std::string& program,
                                                        std::span<const std::string> arguments,
                                                        double start_seconds) {
  std::unique_ptr<WorkerChild> child(new WorkerChild());
  HONE_RETURN_IF_ERROR(child->spawn(program, arguments));
  const auto hello = child->receive(start_seconds);
  if (!hello.ok() || hello->type != wire::MessageType::kHello) {
    const bool late = !hello.ok() && hello.status().code() == Code::kTimeout;
    const std::string death = child->end(late);
    return error(Code::kInternal, "worker {} did not start: {}", program,
                 hello.ok() || late                        ? "it did not say hello"
                 : hello.status().code() == Code::kInvalid ? hello.status().message()
                                                           : death);
  }
  if (!hello->body.empty()) {
    child->end(false);
    return error(Code::kUnsupported, "{}", hello->body);
  }
  return child;
}

WorkerChild::~WorkerChild() {
  if (alive()) end(true);
}

Status WorkerChild::spawn(const std::string& program, std::span<const std::string> arguments) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return error(Code::kIo, "cannot make a socket: {}", std::strerror(errno));
  }
  socket_ = sockets[0];
  // The number must not be kWorkerFd itself: dup2 onto itself would leave it close-on-exec.
  const int theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, kWorkerFd + 1);
  close(sockets[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, theirs, kWorkerFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerFd + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A process group of its own: the terminal's Ctrl-C does not even reach it.
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  sigdelset(&all, SIGKILL), sigdelset(&all, SIGSTOP);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);

  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--fd", std::to_string(kWorkerFd)});
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const int code =
      theirs < 0 ? EMFILE
                 : posix_spawn(&pid_, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (theirs >= 0) close(theirs);
  if (code == 0) return ok_status();
  pid_ = -1;
  close(socket_);
  socket_ = -1;
  return error(Code::kIo, "cannot start the worker {}: {}", program, std::strerror(code));
}

// Sanitizers reserve terabytes: no limit there.
void WorkerChild::limit_memory([[maybe_unused]] int64_t bytes) const {
#ifndef HONE_SANITIZER
  int64_t mapped_pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", pid_)) >> mapped_pages;
  const auto most = static_cast<rlim_t>(mapped_pages * sysconf(_SC_PAGESIZE) + bytes);
  const rlimit limit = {most, most};
  prlimit(pid_, RLIMIT_AS, &limit, nullptr);
#endif
}

void WorkerChild::limit_cpu(double seconds) const {
  clockid_t clock = {};
  timespec used = {};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return;
  const rlimit limit = {static_cast<rlim_t>(used.tv_sec) + static_cast<rlim_t>(seconds) + 1,
                        RLIM_INFINITY};
  prlimit(pid_, RLIMIT_CPU, &limit, nullptr);
}

bool WorkerChild::wait(double seconds) const {
  pollfd readable = {socket_, POLLIN, 0};
  const double end = real_clock().now_seconds() + seconds;
  for (double rest = seconds;; rest = std::max(0.0, end - real_clock().now_seconds())) {
    const int ready = poll(&readable, 1, to_ms(rest));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

Result<wire::Message> WorkerChild::receive(double seconds) {
  return wire::receive_message(socket_, to_ms(seconds));
}

void WorkerChild::interrupt() {
  const std::lock_guard lock(socket_mutex_);
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
}

std::string WorkerChild::end(bool by_force) {
  {
    const std::lock_guard lock(socket_mutex_);
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  // It is ending or already dead, unless it hangs in its last moments.
  siginfo_t end = {};
  for (int i = 0; i < 100 && !by_force && end.si_pid != pid_; ++i) {
    if (waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0) break;
    if (end.si_pid != pid_) usleep(1000);
  }
  const bool forced = end.si_pid != pid_;
  // With all that it started: they would keep the tuner's stderr open.
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  was_killed_ = !forced && WIFSIGNALED(status) &&
                (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
  was_too_slow_ = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
  return death_text(status);
}

void isolate_worker(int fd) {
  signal(SIGINT, SIG_IGN);  // Ctrl-C is for the process that started it to handle
  signal(SIGPIPE, SIG_IGN);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (fd > 3) close_range(3, static_cast<unsigned>(fd) - 1, 0);
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

}  // namespace hone
