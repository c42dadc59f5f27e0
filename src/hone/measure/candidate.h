// measure/candidate.h - the worker's side of a job: it loads the candidate, runs and times it. What
// runs on a device is in device_candidate.h.
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
#include "hone/measure/worker_operands.h"
#include "hone/runtime/pool.h"

namespace hone::measure {

// Loaded code bound to its memory: that of the operands, and private memory, which candidates use
// one after the other.
class LoadedCandidate {
 public:
  // Loads a job. `memory` holds kPacked and kWorkspace arguments, then each thread's scratch. With
  // `poison`, private memory starts as NaN.
  [[nodiscard]] static Result<LoadedCandidate> load(const Job& job, int threads,
                                                    const WorkerOperands* operands, Arena& memory,
                                                    bool poison);
  // Runs the phases that prepare constants. Returns 0 or the first error that a kernel returned.
  [[nodiscard]] int prepare(runtime::Pool* pool) const { return run(pool, prepare_); }
  [[nodiscard]] int run(runtime::Pool* pool) const { return run(pool, main_); }
  [[nodiscard]] void* argument(size_t i) const { return args_[i]; }
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

class DeviceBench;

// Runs jobs one after the other and keeps threads and memory from one to the next.
class Bench {
 public:
  // The parameter `events` says what to count for jobs that ask for it; null means what this
  // machine can count.
  explicit Bench(const HardwareEvents* events = nullptr);
  // Also runs code for this device.
  explicit Bench(std::unique_ptr<DeviceBench> device);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  [[nodiscard]] Measurement run(const Job& job, WorkerOperands* operands);
  // Frees what the device keeps of the operands.
  void forget(const WorkerOperands& operands);
  // Returns whether nothing can run on the device any more.
  [[nodiscard]] bool is_lost() const;

 private:
  [[nodiscard]] Status set_threads(int threads);
  // Counts hardware events. `seconds` is the time of a run with everything around it.
  [[nodiscard]] std::optional<trial::CountedBounds> count(const LoadedCandidate& candidate,
                                                          Weights weights, double seconds,
                                                          int& returned);
  const HardwareEvents* events_;
  std::unique_ptr<DeviceBench> device_;
  runtime::Pool* pool_ = nullptr;
  int threads_ = 0;
  Arena memory_, rival_memory_;
  Sweep sweep_;
};

}  // namespace hone::measure
