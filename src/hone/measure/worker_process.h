// measure/worker_process.h - the tuner's end of one worker: it starts the worker, gives it jobs and
// collects its exit status. One thread owns it and must live as long as the worker does (which dies
// with that thread); other threads may call only interrupt().
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hone/base/status.h"
#include "hone/measure/job.h"
#include "hone/measure/worker.h"

namespace hone::measure {

struct WorkerOptions {
  std::string executable;              // empty: hone-worker (worker_program.h)
  std::vector<std::string> arguments;  // the device, then "--fd" and its number are appended
  WorkerDevice device;
  double start_seconds = 10;     // limit until it must say hello
  double operands_seconds = 60;  // limit for copying a task's operands
  int64_t memory_bytes = 0;      // limit of mapped memory; 0 means three quarters of the machine's
};

class WorkerProcess {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WorkerProcess>> start(const WorkerOptions& options);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  // Runs a job. Every failure is an answer; after a crash or a timeout, the worker is dead. It
  // answers a crash itself if its device is lost.
  [[nodiscard]] Measurement run(const Job& job);
  [[nodiscard]] bool alive() const { return pid_ > 0; }
  // Returns whether the last crash was a SIGKILL or SIGTERM from outside, which is not necessarily
  // the candidate's fault.
  [[nodiscard]] bool was_killed() const { return was_killed_; }
  // Makes run() end soon with a crash.
  void interrupt();
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  WorkerProcess(const WorkerOptions& options, std::string program)
      : options_(options), program_(std::move(program)) {}
  [[nodiscard]] Status spawn();
  void limit_memory() const;
  [[nodiscard]] Status give_operands(const Operands& operands);
  // Waits for the worker's exit, or kills it with `by_force`, and returns how it ended.
  std::string bury(bool by_force);

  WorkerOptions options_;
  const std::string program_;
  pid_t pid_ = -1;
  std::mutex socket_mutex_;  // protects closing the socket against interrupt()
  int socket_ = -1;
  bool was_killed_ = false;
  std::deque<uint64_t> held_;  // operands that the worker has, oldest first
};

}  // namespace hone::measure
