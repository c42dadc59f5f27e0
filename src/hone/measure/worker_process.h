// measure/worker_process.h - the tuner's end of one worker: it starts the worker, gives it jobs and
// collects its exit status. One thread owns it and must live as long as the worker does (which dies
// with that thread); other threads may call only interrupt().
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "hone/base/worker_child.h"
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
  // Limit of the operands that the worker keeps, but for those of the last job; 0: none.
  int64_t held_bytes = 0;
};

class WorkerProcess {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WorkerProcess>> start(const WorkerOptions& options);
  // Runs a job. Every failure is an answer; after a crash or a timeout, the worker is dead. It
  // answers a crash itself if its device is lost.
  [[nodiscard]] Measurement run(const Job& job);
  [[nodiscard]] bool alive() const { return child_->alive(); }
  // Returns whether the last crash was a SIGKILL or SIGTERM from outside, which is not necessarily
  // the candidate's fault.
  [[nodiscard]] bool was_killed() const { return child_->was_killed(); }
  // Makes run() end soon with a crash.
  void interrupt() { child_->interrupt(); }
  [[nodiscard]] pid_t pid() const { return child_->pid(); }

 private:
  WorkerProcess(const WorkerOptions& options, std::unique_ptr<WorkerChild> child)
      : options_(options), child_(std::move(child)) {}
  [[nodiscard]] Status give_operands(const std::shared_ptr<const Operands>& operands);
  [[nodiscard]] Status make_room(int64_t bytes);

  WorkerOptions options_;
  std::unique_ptr<WorkerChild> child_;
  // Operands that the worker has mapped, oldest first: who counts their memory sees that it is
  // used.
  std::deque<std::shared_ptr<const Operands>> held_;
};

}  // namespace hone::measure
