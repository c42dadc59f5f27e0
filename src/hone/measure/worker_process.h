// measure/worker_process.h - the tuner's end of one worker: starts it, gives it jobs, buries it.
// Owned by one thread, which must live as long as the worker does (it dies with that thread); only
// interrupt() may be called from others.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/measure/job.h"

namespace hone::measure {

struct WorkerOptions {
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments = {"worker"};  // "--fd" and its number are added
  double start_seconds = 10;                        // until it must say hello
  double operands_seconds = 60;                     // to copy a task's operands
  int64_t memory_bytes = 0;  // that it may map; 0: three quarters of the machine's
};

class WorkerProcess {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WorkerProcess>> start(const WorkerOptions& options);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  // Whatever happens is an answer; if it was a crash or a timeout, the worker is dead.
  [[nodiscard]] Measurement run(const Job& job);
  [[nodiscard]] bool alive() const { return pid_ > 0; }
  // The last crash was a SIGKILL or SIGTERM from outside: not necessarily the candidate's fault.
  [[nodiscard]] bool was_killed() const { return was_killed_; }
  // Makes run() end soon with a crash.
  void interrupt();
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  explicit WorkerProcess(const WorkerOptions& options) : options_(options) {}
  [[nodiscard]] Status spawn();
  void limit_memory() const;
  [[nodiscard]] Status give_operands(const Operands& operands);
  // Waits for its end, by force, and says how it came about.
  std::string bury(bool by_force);

  WorkerOptions options_;
  pid_t pid_ = -1;
  std::mutex socket_mutex_;  // of closing against interrupt()
  int socket_ = -1;
  bool was_killed_ = false;
  std::deque<uint64_t> held_;  // operands that the worker has, oldest first
};

}  // namespace hone::measure
