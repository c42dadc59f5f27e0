// remote/remote_machine.h - a machine elsewhere, on which hone serve runs: this process compiles
// for it, and it measures.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "hone/machine/machine.h"
#include "hone/remote/link.h"

namespace hone::remote {

class RemoteMachine final : public machine::Machine {
 public:
  ~RemoteMachine() override;
  // Connects and learns what the machine is.
  [[nodiscard]] static Result<std::unique_ptr<RemoteMachine>> open(MachineAddress address);

  [[nodiscard]] const target::Target& target() const override { return target_; }
  [[nodiscard]] Result<std::unique_ptr<measure::Runner>> make_runner(
      const measure::WorkerOptions& worker, const target::Target& target) const override;
  [[nodiscard]] const machine::ModelTimer& models() const override;
  [[nodiscard]] const machine::Conditions& conditions() const override;
  [[nodiscard]] Result<target::Gpu> gpu_here(const target::Gpu& described) const override;
  [[nodiscard]] bool is_elsewhere() const override { return is_elsewhere_; }

 private:
  class Timer;
  class Conditions;
  RemoteMachine(MachineAddress address, std::string session, std::unique_ptr<Link> link);

  MachineAddress address_;
  target::Target target_;
  bool is_elsewhere_;
  std::unique_ptr<Conditions> conditions_;
};

// Returns the machine of this name (machine_file.h), which this process opens once;
// machine::local() if the name is empty.
[[nodiscard]] Result<const machine::Machine*> machine_named(const std::string& name);

}  // namespace hone::remote
