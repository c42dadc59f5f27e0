// measure/candidate.h - the worker's side of a job: it maps the operands and runs the candidate.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hone/backend/backend.h"
#include "hone/measure/arena.h"
#include "hone/measure/counters.h"
#include "hone/measure/job.h"
#include "hone/measure/sweep.h"
#include "hone/runtime/pool.h"

namespace hone::measure {

// Operands of a task, which are copied out of the shared memory once. Those that kernels only read
// are write-protected.
class WorkerOperands {
 public:
  // Maps the operands and takes ownership of the descriptor.
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
  // Removes the outputs of the job before. It is called before each job.
  void reset_outputs(bool poison);
  // Returns the largest error of all outputs with expected values; nothing if there are none.
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

// Loaded code bound to its memory: that of the operands, and private memory, which candidates use
// one after the other.
class LoadedCandidate {
 public:
  // Loads a job. `memory` holds kPacked and kWorkspace arguments, then each thread's scratch. With
  // `poison`, private memory starts as NaN.
  [[nodiscard]] static Result<LoadedCandidate> load(const Job& job, int threads,
                                                    WorkerOperands* operands, Arena& memory,
                                                    bool poison);
  // Runs the phases that prepare constants. Returns 0 or the first error that a kernel returned.
  [[nodiscard]] int prepare(runtime::Pool* pool) const { return run(pool, prepare_); }
  [[nodiscard]] int run(runtime::Pool* pool) const { return run(pool, main_); }
  // Returns the seconds of `runs` runs; `returned` collects the kernels' results. If `counters` are
  // given, only the runs are counted.
  [[nodiscard]] double time(runtime::Pool* pool, int64_t runs, Weights weights, const Sweep& sweep,
                            int& returned, const Counters* counters = nullptr) const;
  // Returns the seconds, at best, that time() spends on the caches before each run.
  [[nodiscard]] double seconds_to_forget(runtime::Pool* pool, Weights weights,
                                         const Sweep& sweep) const;

 private:
  [[nodiscard]] bool forgets_nothing(Weights weights) const {
    return weights == Weights::kWarm || weights_.empty();
  }
  void forget(runtime::Pool* pool, Weights weights, const Sweep& sweep) const;
  [[nodiscard]] int run(runtime::Pool* pool, const std::vector<runtime::PhaseCall>& phases) const;
  backend::LoadedPtr code_;
  std::vector<void*> args_;
  std::vector<std::span<char>> weights_, others_;  // arguments of the main phases
  std::vector<runtime::PhaseCall> prepare_, main_;
  void* scratch_ = nullptr;
  int64_t scratch_stride_ = 0;
};

// Runs jobs one after the other and keeps threads and memory from one to the next.
class Bench {
 public:
  // The parameter `events` says what to count for jobs that ask for it; null means what this
  // machine can count.
  explicit Bench(const HardwareEvents* events = nullptr) : events_(events) {}
  ~Bench() { runtime::pool_destroy(pool_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  [[nodiscard]] Measurement run(const Job& job, WorkerOperands* operands);

 private:
  [[nodiscard]] Status set_threads(int threads);
  // Counts hardware events. `seconds` is the time of a run with everything around it.
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
