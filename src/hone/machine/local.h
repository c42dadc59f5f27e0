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
// Returns the cores of the machine that a target is a part of: a GPU's host is this machine. They
// compile, and compute what outputs must be.
[[nodiscard]] int host_cores(const target::Target& target);
// Returns the machine that a caller names; local() if it is null.
[[nodiscard]] inline const Machine& or_local(const Machine* machine) {
  return machine != nullptr ? *machine : local();
}

}  // namespace hone::machine
