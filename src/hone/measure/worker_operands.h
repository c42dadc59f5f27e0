// measure/worker_operands.h - a task's operands in a worker, and what the worker says of a
// candidate that wrote its outputs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/measure/arena.h"
#include "hone/measure/job.h"

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

// Checks that an argument of a candidate fits the operand that it names.
[[nodiscard]] Status check_operand(const Argument& argument, size_t index,
                                   const WorkerOperands* operands);
// Returns the answer for a candidate that computed something else, with its error if it is known.
[[nodiscard]] Measurement wrong(const Job& job, double error, std::string message);
// Returns what is wrong with what a candidate wrote, and notes its largest error. `damaged` says
// that it wrote outside of its own memory.
[[nodiscard]] std::optional<Measurement> check_outputs(const Job& job, bool damaged,
                                                       const WorkerOperands* operands,
                                                       double& largest);
// Puts the times of a duel into the challenger's answer.
void keep_duel(Measurement& m, trial::Duel duel);

}  // namespace hone::measure
