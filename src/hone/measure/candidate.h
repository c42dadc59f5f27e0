// measure/candidate.h - the worker's side of a job: its operands in memory, and the run itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hone/codegen/runtime/pool.h"
#include "hone/measure/arena.h"
#include "hone/measure/job.h"

namespace hone::measure {

// Operands of a task, copied out of the shared memory once: what kernels only read is
// write-protected.
class WorkerOperands {
 public:
  // Takes the descriptor.
  [[nodiscard]] static Result<std::unique_ptr<WorkerOperands>> map(const OperandLayout& layout,
                                                                   int fd);
  ~WorkerOperands();
  WorkerOperands(const WorkerOperands&) = delete;
  WorkerOperands& operator=(const WorkerOperands&) = delete;
  [[nodiscard]] int count() const { return static_cast<int>(layout_.entries.size()); }
  [[nodiscard]] const OperandLayout::Entry& entry(int i) const {
    return layout_.entries[static_cast<size_t>(i)];
  }
  [[nodiscard]] void* data(int i) const { return data_[static_cast<size_t>(i)]; }
  // Before each job: no trace of the one before it.
  void reset_outputs(bool poison);
  // Of all outputs that something is known about; nothing if there is none.
  [[nodiscard]] std::optional<double> error() const;
  [[nodiscard]] bool damaged() const { return outputs_.damaged() >= 0; }

 private:
  WorkerOperands() = default;
  [[nodiscard]] Status fill();
  OperandLayout layout_;
  char* shared_ = nullptr;
  Arena inputs_, outputs_;
  size_t num_outputs_ = 0;
  std::vector<void*> data_;
};

// Runs jobs one after the other; keeps threads and memory from one to the next.
class Bench {
 public:
  Bench() = default;
  ~Bench() { runtime::pool_destroy(pool_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  [[nodiscard]] Measurement run(const Job& job, WorkerOperands* operands);

 private:
  [[nodiscard]] Status set_threads(int threads);
  runtime::Pool* pool_ = nullptr;
  int threads_ = 0;
  Arena memory_;  // kPacked and kWorkspace arguments, then each thread's scratch
};

}  // namespace hone::measure
