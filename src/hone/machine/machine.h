// machine/machine.h - where code runs and is timed. A session has one machine, and whatever
// measures asks it; nothing above asks for the machine that this process runs on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/artifact/artifact.h"
#include "hone/measure/core_state.h"
#include "hone/measure/host_load.h"
#include "hone/measure/measure_roofline.h"
#include "hone/measure/runner.h"
#include "hone/measure/worker_process.h"
#include "hone/target/target.h"

namespace hone::machine {

// A model that was loaded to be timed. A run consists of some of its steps (ArtifactSpec::steps).
class TimedModel {
 public:
  virtual ~TimedModel() = default;
  // Runs these steps in order, on inputs of zeros, and returns the seconds of each.
  [[nodiscard]] virtual Result<std::vector<double>> run(std::span<const int32_t> steps) = 0;
};

// Times whole models.
class ModelTimer {
 public:
  virtual ~ModelTimer() = default;
  // Returns why this machine times no models; empty if it does.
  [[nodiscard]] virtual std::string unable() const { return ""; }
  // Returns the seconds of the runs of each library, in turns, so that what disturbs one disturbs
  // the others, too: in each round every library runs once, on inputs of zeros. There are at least
  // kLeastRounds rounds however few `seconds` there are, and the first one is not timed.
  [[nodiscard]] virtual Result<std::vector<std::vector<double>>> time_in_turns(
      const std::vector<std::string>& libraries, int threads, double seconds) const = 0;
  // Copies the weights of `spec`, which may be gone afterwards.
  [[nodiscard]] virtual Result<std::unique_ptr<TimedModel>> load(const artifact::ArtifactSpec& spec,
                                                                 int threads) const = 0;
};
inline constexpr int kLeastRounds = 4;

// Says what the machine is like while something is measured.
class Conditions {
 public:
  virtual ~Conditions() = default;
  // Looks whether so many threads have a core each; empty if there is nothing to look for.
  [[nodiscard]] virtual measure::CoreWatch::Look core_look(int threads) const = 0;
  // Samples what other programs do there.
  [[nodiscard]] virtual measure::HostMonitor::Source load() const = 0;
  // Returns whether data of so many bytes, read again and again, comes from a cache.
  [[nodiscard]] virtual bool stays_in_cache(int64_t bytes) const = 0;
  // Measures the limits of the machine that `target` describes, which takes seconds.
  [[nodiscard]] virtual Result<trial::Roofline> roofline(
      const target::Target& target, const measure::RooflineOptions& options) const = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  // The device as data: the one that the name "host" stands for.
  [[nodiscard]] virtual const target::Target& target() const = 0;
  // Returns a runner that has shown that it can measure kernels for `target`, which runs there.
  [[nodiscard]] virtual Result<std::unique_ptr<measure::Runner>> make_runner(
      const measure::WorkerOptions& worker, const target::Target& target) const = 0;
  [[nodiscard]] virtual const ModelTimer& models() const = 0;
  [[nodiscard]] virtual const Conditions& conditions() const = 0;
  // Returns the GPU of this machine that is meant by a description, as its driver describes it. By
  // default, there is none.
  [[nodiscard]] virtual Result<target::Gpu> gpu_here(const target::Gpu& described) const;

  // Returns whether its cores are others than those that this process compiles on, which then have
  // nothing else to do while it measures. By default, they are the same.
  [[nodiscard]] virtual bool is_elsewhere() const { return false; }

  // Finds a device by its name: "host" is this machine, "host-..." a part of it, and any other name
  // is one that target::find knows. What is described of OpenCL's devices differs from machine to
  // machine, so if this one has the device, its driver's numbers hold.
  [[nodiscard]] Result<target::Target> find(std::string_view name) const;
  // Returns whether code for the target runs on this machine, so that it can be measured.
  [[nodiscard]] bool runs(const target::Target& target) const;
  // Finds a device that this machine runs; any other is an error.
  [[nodiscard]] Result<target::Target> find_measurable(std::string_view name) const;
  // Returns a watch over the cores of so many threads.
  [[nodiscard]] measure::CoreWatch watch_cores(int threads,
                                               const measure::CoreWatch::Options& options) const;
};

}  // namespace hone::machine
