// machine/quick_machine_testing.h - the machine that a test runs on, for tests in which times
// decide nothing: models run as often as they must to be timed at all, and nobody waits until other
// programs leave a core.
#pragma once

#include "hone/machine/local.h"

namespace hone::machine {

class QuickMachine final : public Machine {
 public:
  explicit QuickMachine(target::Target target = target::host()) : local_(std::move(target)) {}

  [[nodiscard]] const target::Target& target() const override { return local_.target(); }
  [[nodiscard]] Result<std::unique_ptr<measure::Runner>> make_runner(
      const measure::WorkerOptions& worker, const target::Target& target) const override {
    return local_.make_runner(worker, target);
  }
  [[nodiscard]] const ModelTimer& models() const override { return timer_; }
  [[nodiscard]] const Conditions& conditions() const override { return conditions_; }

 private:
  class Timer final : public ModelTimer {
   public:
    explicit Timer(const Machine& machine) : of_(machine.models()) {}
    [[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turns(
        const std::vector<std::string>& libraries, int threads, double) const override {
      return of_.time_in_turns(libraries, threads, 0);
    }
    [[nodiscard]] Result<std::unique_ptr<TimedModel>> load(const artifact::ArtifactSpec& spec,
                                                           int threads) const override {
      return of_.load(spec, threads);
    }

   private:
    const ModelTimer& of_;
  };
  class Calm final : public Conditions {
   public:
    explicit Calm(const Machine& machine) : of_(machine.conditions()) {}
    [[nodiscard]] measure::CoreWatch::Look core_look(int) const override { return {}; }
    [[nodiscard]] measure::HostMonitor::Source load() const override { return of_.load(); }
    [[nodiscard]] bool stays_in_cache(int64_t bytes) const override {
      return of_.stays_in_cache(bytes);
    }
    [[nodiscard]] Result<trial::Roofline> roofline(
        const target::Target& target, const measure::RooflineOptions& options) const override {
      return of_.roofline(target, options);
    }

   private:
    const Conditions& of_;
  };

  LocalMachine local_;
  Timer timer_{local_};
  Calm conditions_{local_};
};

}  // namespace hone::machine
