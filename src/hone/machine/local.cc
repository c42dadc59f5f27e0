#include "hone/machine/local.h"

#include <algorithm>

#include "hone/machine/model_run.h"
#include "hone/machine/time_in_turns.h"
#include "hone/measure/self_test.h"
#include "hone/measure/sweep.h"
#include "hone/target/gpu_devices.h"

namespace hone::machine {
namespace {

class LocalTimer final : public ModelTimer {
 public:
  [[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turns(
      const std::vector<std::string>& libraries, int threads, double seconds) const override {
    return machine::time_in_turns(libraries, threads, seconds);
  }
  [[nodiscard]] Result<std::unique_ptr<TimedModel>> load(const artifact::ArtifactSpec& spec,
                                                         int threads) const override {
    return ModelRun::create(spec, threads);
  }
};

class LocalConditions final : public Conditions {
 public:
  [[nodiscard]] measure::CoreWatch::Look core_look(int threads) const override {
    return measure::look_at_threads(threads);
  }
  [[nodiscard]] measure::HostMonitor::Source load() const override {
    return measure::sample_machine;
  }
  [[nodiscard]] bool stays_in_cache(int64_t bytes) const override {
    return measure::stays_in_cache(bytes);
  }
  [[nodiscard]] Result<trial::Roofline> roofline(
      const target::Target& target, const measure::RooflineOptions& options) const override {
    return measure::measure_roofline(target, options);
  }
};

}  // namespace

Result<std::unique_ptr<measure::Runner>> LocalMachine::make_runner(
    const measure::WorkerOptions& worker, const target::Target& target) const {
  return measure::make_tested_runner(worker, target);
}

const ModelTimer& LocalMachine::models() const {
  static const LocalTimer timer;
  return timer;
}

const Conditions& LocalMachine::conditions() const {
  static const LocalConditions conditions;
  return conditions;
}

Result<target::Gpu> LocalMachine::gpu_here(const target::Gpu& described) const {
  return target::detect_gpu(described);
}

int host_cores(const target::Target& target) {
  const int here = local().target().cpu().cores;
  return target.kind() == target::Kind::kCpu ? std::min(target.cpu().cores, here) : here;
}

const Machine& local() {
  static const LocalMachine machine(target::host());
  return machine;
}

}  // namespace hone::machine
