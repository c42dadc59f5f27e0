// machine/null.h - a machine without a device: what a kernel costs is what a function says, nothing
// else runs there, and no whole model can be timed. Everything above a machine is tested with it.
#pragma once

#include "hone/machine/machine.h"
#include "hone/measure/null_runner.h"

namespace hone::machine {

class NullMachine final : public Machine {
 public:
  // Its runners wait for `wait_seconds` in place of running a candidate.
  NullMachine(target::Target target, measure::NullRunner::Cost cost, double wait_seconds = 0)
      : target_(std::move(target)), cost_(std::move(cost)), wait_seconds_(wait_seconds) {}

  [[nodiscard]] const target::Target& target() const override { return target_; }
  [[nodiscard]] Result<std::unique_ptr<measure::Runner>> make_runner(
      const measure::WorkerOptions& worker, const target::Target& target) const override;
  [[nodiscard]] const ModelTimer& models() const override;
  [[nodiscard]] const Conditions& conditions() const override;

 private:
  target::Target target_;
  measure::NullRunner::Cost cost_;
  double wait_seconds_;
};

}  // namespace hone::machine
