// measure/device_candidate.h - the worker's side of a job whose code is for a device: operands are
// uploaded once, constants are packed on the host, runs are timed by the device's clock, and
// outputs are compared on the host.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "hone/measure/arena.h"
#include "hone/measure/device_memory.h"
#include "hone/measure/gpu_clocks.h"
#include "hone/measure/worker_operands.h"
#include "hone/runtime/pool.h"

namespace hone::measure {

// A job that cannot be run or went wrong.
struct Trouble {
  trial::Outcome outcome;
  std::string message;
};

// Operands of a task, uploaded once.
struct DeviceOperands {
  explicit DeviceOperands(runtime::Device& device) : inputs(device), outputs(device) {}
  DeviceMemory inputs, outputs;  // constants are inputs, too
  std::vector<size_t> places;    // each operand's, among the inputs or the outputs
};

// Code on the device, bound to its memory.
class DeviceCandidate {
 public:
  explicit DeviceCandidate(runtime::Device& device) : device_(device) {}
  ~DeviceCandidate();
  DeviceCandidate(const DeviceCandidate&) = delete;
  DeviceCandidate& operator=(const DeviceCandidate&) = delete;
  // Loads a job and prepares its constants, by `pool` in `host_memory`. `memory` holds kPacked and
  // kWorkspace arguments; with `poison`, workspaces start as NaN.
  [[nodiscard]] std::optional<Trouble> load(const Job& job, const WorkerOperands* operands,
                                            const DeviceOperands* uploaded, DeviceMemory& memory,
                                            runtime::Pool* pool, Arena& host_memory, bool poison);
  // Puts a run into the stream.
  [[nodiscard]] Status start() const;
  // Records so many runs as a graph of CUDA, which start(runs) then launches: the CPU may need
  // longer to launch a small kernel than the device to run it.
  [[nodiscard]] Status record(int64_t runs);
  [[nodiscard]] Status start(int64_t runs) const;

 private:
  struct Kernel {
    runtime::DeviceFunction function;
    int64_t blocks = 1;
  };
  [[nodiscard]] std::optional<Trouble> load_code(const backend::Executable& executable);
  [[nodiscard]] Status bind(const Job& job, const WorkerOperands* operands,
                            const DeviceOperands* uploaded, DeviceMemory& memory, bool poison);
  [[nodiscard]] std::optional<Trouble> prepare(const Job& job, const WorkerOperands* operands,
                                               DeviceMemory& memory, runtime::Pool* pool,
                                               Arena& host_memory) const;

  runtime::Device& device_;
  runtime::DeviceModule module_;
  std::vector<Kernel> kernels_;
  std::vector<runtime::DeviceArgument> args_;
  runtime::DeviceGraph graph_;
  int64_t recorded_ = 0;  // runs that the graph consists of; 0 without one
};

// Runs jobs one after the other and keeps the device and its memory from one to the next.
class DeviceBench {
 public:
  // Opens the first device of the kind with this text in its name or its platform's.
  [[nodiscard]] static Result<std::unique_ptr<DeviceBench>> open(runtime::DeviceKind kind,
                                                                 const std::string& name);
  ~DeviceBench();
  DeviceBench(const DeviceBench&) = delete;
  DeviceBench& operator=(const DeviceBench&) = delete;
  // Constants are prepared by the threads of `pool`.
  [[nodiscard]] Measurement run(const Job& job, WorkerOperands* operands, runtime::Pool* pool);
  // Frees the copy of the operands.
  void forget(const WorkerOperands& operands) { uploaded_.erase(&operands); }
  // Returns whether this process cannot use the device any more. The job after which it is so was
  // answered with kCrash.
  [[nodiscard]] bool is_lost() const { return runtime::device_lost(*device_); }

 private:
  struct Close {
    void operator()(runtime::Device* device) const { runtime::device_close(device); }
  };
  using DevicePtr = std::unique_ptr<runtime::Device, Close>;
  explicit DeviceBench(DevicePtr device);
  [[nodiscard]] Status upload(const WorkerOperands& operands);
  [[nodiscard]] Status reset_outputs(WorkerOperands& operands, DeviceOperands& uploaded,
                                     bool poison);
  // Prepares a buffer of this size, which is written so that nothing else is in the L2.
  [[nodiscard]] Status reserve_flush(int64_t bytes);
  // Says what is wrong with the outputs, or with the candidate's own memory.
  [[nodiscard]] std::optional<Measurement> check(const Job& job, const DeviceMemory& memory,
                                                 WorkerOperands* operands, double& error);
  // Runs a candidate so often and returns the seconds; infinity after a failure, which is kept.
  [[nodiscard]] double time(DeviceCandidate& candidate, int64_t runs, Weights weights);
  [[nodiscard]] Result<double> timed(DeviceCandidate& candidate, int64_t runs, bool flush);
  [[nodiscard]] double seconds_to_flush();
  // Times a candidate, once more if the device was slowed down meanwhile.
  [[nodiscard]] trial::Timing time_unthrottled(const Job& job, DeviceCandidate& candidate,
                                               double between);
  [[nodiscard]] Measurement answer(const Job& job, Trouble trouble) const;
  [[nodiscard]] Measurement measure(const Job& job, const DeviceMemory& memory,
                                    WorkerOperands* operands, DeviceCandidate& candidate,
                                    DeviceCandidate* rival);

  DevicePtr device_;
  std::unique_ptr<const GpuClocks> clocks_;                   // null if nobody knows
  std::map<const WorkerOperands*, DeviceOperands> uploaded_;  // looked up only
  DeviceMemory memory_, rival_memory_;
  Arena host_memory_;
  runtime::DeviceBuffer flush_;
  runtime::DeviceEvent begin_, end_;
  Status failure_;  // the first one while runs are timed
};

}  // namespace hone::measure
