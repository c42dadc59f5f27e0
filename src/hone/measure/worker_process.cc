#include "hone/measure/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "hone/measure/protocol.h"
#include "hone/measure/wire.h"
#include "hone/measure/worker_program.h"

extern char** environ;

namespace hone::measure {
namespace {

// Tasks whose operands a worker keeps: the scheduler goes back and forth between a few.
constexpr size_t kMaxHeldOperands = 4;
constexpr int kWorkerFd = 3;

int to_ms(double seconds) { return static_cast<int>(std::min(seconds, 1e6) * 1000); }

std::string death_text(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("the worker was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("the worker ended with status {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const WorkerOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::string program, find_worker_program(options.executable));
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(options, std::move(program)));
  HONE_RETURN_IF_ERROR(worker->spawn());
  const auto hello = receive_message(worker->socket_, to_ms(options.start_seconds));
  if (!hello.ok() || hello->type != MessageType::kHello) {
    const bool late = !hello.ok() && hello.status().code() == Code::kTimeout;
    const std::string death = worker->bury(late);
    return error(Code::kInternal, "worker {} did not start: {}", worker->program_,
                 hello.ok() || late                        ? "it did not say hello"
                 : hello.status().code() == Code::kInvalid ? hello.status().message()
                                                           : death);
  }
  if (!hello->body.empty()) {
    worker->bury(false);
    return error(Code::kUnsupported, "no worker can measure: {}", hello->body);
  }
  worker->limit_memory();
  return worker;
}

WorkerProcess::~WorkerProcess() {
  if (alive()) bury(true);
}

Status WorkerProcess::spawn() {
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

  std::vector<std::string> words = {program_};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  if (options_.device.kind != runtime::DeviceKind::kNone) {
    words.emplace_back(options_.device.kind == runtime::DeviceKind::kCuda ? "--cuda" : "--opencl");
    words.push_back(options_.device.name);
  }
  words.insert(words.end(), {"--fd", std::to_string(kWorkerFd)});
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const int code = theirs < 0 ? EMFILE
                              : posix_spawn(&pid_, program_.c_str(), &actions, &attributes,
                                            argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (theirs >= 0) close(theirs);
  if (code == 0) return ok_status();
  pid_ = -1;
  close(socket_);
  socket_ = -1;
  return error(Code::kIo, "cannot start the worker {}: {}", program_, std::strerror(code));
}

// Beyond what the program itself has mapped by now. Sanitizers reserve terabytes: no limit there.
void WorkerProcess::limit_memory() const {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  int64_t mapped_pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", pid_)) >> mapped_pages;
  const int64_t all = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  const auto bytes = static_cast<rlim_t>(
      mapped_pages * page + (options_.memory_bytes > 0 ? options_.memory_bytes : all / 4 * 3));
  const rlimit limit = {bytes, bytes};
  prlimit(pid_, RLIMIT_AS, &limit, nullptr);
#endif
}

Status WorkerProcess::give_operands(const Operands& operands) {
  if (std::find(held_.begin(), held_.end(), operands.id()) != held_.end()) return ok_status();
  if (held_.size() >= kMaxHeldOperands) {
    HONE_RETURN_IF_ERROR(
        send_message(socket_, MessageType::kForget, Writer().put(held_.front()).bytes()));
    held_.pop_front();
  }
  HONE_RETURN_IF_ERROR(send_message(socket_, MessageType::kOperands,
                                    encode(OperandsMessage{operands.id(), operands.layout()}),
                                    operands.fd()));
  HONE_ASSIGN_OR_RETURN(const Message answer,
                        receive_message(socket_, to_ms(options_.operands_seconds)));
  // The socket has not failed: the worker is alive and says what is wrong.
  if (!answer.body.empty()) return error(Code::kUnsupported, "{}", answer.body);
  held_.push_back(operands.id());
  return ok_status();
}

Measurement WorkerProcess::run(const Job& job) {
  HONE_ASSERT(alive(), "a dead worker runs nothing");
  Status status = job.operands ? give_operands(*job.operands) : ok_status();
  if (status.code() == Code::kUnsupported)
    return failed(job.id, trial::Outcome::kLoad, status.message());
  if (status.ok()) status = send_message(socket_, MessageType::kJob, encode_job(job));
  if (status.ok()) {
    const auto answer = receive_message(socket_, to_ms(job.timeout_seconds));
    if (answer.ok()) {
      const auto measurement = decode_measurement(answer->body);
      if (answer->type == MessageType::kResult && measurement.ok() && measurement->id == job.id) {
        if (measurement->outcome == trial::Outcome::kCrash) bury(true);
        return *measurement;
      }
      status = invalid("an answer that does not belong to the job");
    } else {
      status = answer.status();
    }
  }
  if (status.code() == Code::kTimeout) {
    bury(true);
    return failed(job.id, trial::Outcome::kTimeout,
                  fmt::format("not done after {} s", job.timeout_seconds));
  }
  return failed(job.id, trial::Outcome::kCrash, bury(status.code() == Code::kInvalid));
}

void WorkerProcess::interrupt() {
  const std::lock_guard lock(socket_mutex_);
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
}

std::string WorkerProcess::bury(bool by_force) {
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
  return death_text(status);
}

}  // namespace hone::measure
