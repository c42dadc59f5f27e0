// measure/candidate.h - the worker's side of a job: its operands in memory, and the run itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hone/codegen/runtime/pool.h"
#include "hone/measure/arena.h"
#include "hone/measure/counters.h"
#include "hone/measure/job.h"
#include "hone/measure/sweep.h"

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

// Loaded code bound to its memory: that of the operands, and private memory, which one candidate
// after the other uses.
class LoadedCandidate {
 public:
  // `memory` serves kPacked and kWorkspace arguments, then each thread's scratch. With `poison`
  // private memory holds no numbers at first.
  [[nodiscard]] static Result<LoadedCandidate> load(const Job& job, int threads,
                                                    WorkerOperands* operands, Arena& memory,
                                                    bool poison);
  // What the kernels returned: 0 if all is well.
  [[nodiscard]] int prepare(runtime::Pool* pool) const { return run(pool, prepare_); }
  [[nodiscard]] int run(runtime::Pool* pool) const { return run(pool, main_); }
  // Seconds of `runs` runs; `returned` collects what they returned. Only the runs are counted.
  [[nodiscard]] double time(runtime::Pool* pool, int64_t runs, Weights weights, const Sweep& sweep,
                            int& returned, const Counters* counters = nullptr) const;
  // What time() does before each run, to the caches: seconds of it, at best.
  [[nodiscard]] double seconds_to_forget(runtime::Pool* pool, Weights weights,
                                         const Sweep& sweep) const;

 private:
  [[nodiscard]] bool forgets_nothing(Weights weights) const {
    return weights == Weights::kWarm || weights_.empty();
  }
  void forget(runtime::Pool* pool, Weights weights, const Sweep& sweep) const;
  [[nodiscard]] int run(runtime::Pool* pool, const std::vector<runtime::PhaseCall>& phases) const;
  std::unique_ptr<codegen::LoadedCode> code_;
  std::vector<void*> args_;
  std::vector<std::span<char>> weights_, others_;  // of the main phases' arguments
  std::vector<runtime::PhaseCall> prepare_, main_;
  void* scratch_ = nullptr;
  int64_t scratch_stride_ = 0;
};

// Runs jobs one after the other; keeps threads and memory from one to the next.
class Bench {
 public:
  // `events`: what to count for jobs that want it; null: what this machine can.
  explicit Bench(const HardwareEvents* events = nullptr) : events_(events) {}
  ~Bench() { runtime::pool_destroy(pool_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  [[nodiscard]] Measurement run(const Job& job, WorkerOperands* operands);

 private:
  [[nodiscard]] Status set_threads(int threads);
  // `seconds`: what a run takes with all that is around it.
  [[nodiscard]] std::optional<trial::CountedBounds> count(const LoadedCandidate& candidate,
                                                          Weights weights, double seconds,
                                                          int& returned);
  const HardwareEvents* events_;
  runtime::Pool* pool_ = nullptr;
  int threads_ = 0;
  Arena memory_, rival_memory_;
  Sweep sweep_;
};

}  // namespace hone::measure
