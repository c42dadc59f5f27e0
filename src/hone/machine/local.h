// machine/local.h - the machine that this process runs on: candidates run in worker processes,
// whole models in this process.
#pragma once

#include "hone/machine/machine.h"

namespace hone::machine {

class LocalMachine final : public Machine {
 public:
  // `target` describes the machine, or a part of it that others are to be kept out of.
  explicit LocalMachine(target::Target target) : target_(std::move(target)) {}

  [[nodiscard]] const target::Target& target() const override { return target_; }
  [[nodiscard]] Result<std::unique_ptr<measure::Runner>> make_runner(
      const measure::WorkerOptions& worker, const target::Target& target) const override;
  [[nodiscard]] const ModelTimer& models() const override;
  [[nodiscard]] const Conditions& conditions() const override;
  [[nodiscard]] Result<target::Gpu> gpu_here(const target::Gpu& described) const override;

 private:
  target::Target target_;
};

// Returns the machine that this process runs on, as target::host() describes it.
[[nodiscard]] const Machine& local();
// Returns the cores that compile for a target, and compute what outputs must be: those of this
// machine, or of the part of it that a CPU is.
[[nodiscard]] int host_cores(const target::Target& target);

}  // namespace hone::machine
