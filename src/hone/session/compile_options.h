// compile_options.h - adds to the options of a job (hone/options.h) what only the inside of Hone
// sets, and checks them.
#pragma once

#include <functional>
#include <string>

#include "hone/base/phase_clock.h"
#include "hone/base/status.h"
#include "hone/measure/worker_process.h"
#include "hone/options.h"
#include "hone/tensor/tensor.h"

namespace hone {

namespace graph {
struct Graph;
}
namespace machine {
class Machine;
}
namespace measure {
class Runner;
}

// A shared library that is complete, but not yet at its final path. For a static library, it is a
// shared library of the same kernels and weights.
struct FinishedLibrary {
  std::string file;
  double assembly_seconds = 0;  // seconds for compiling its kernels and packing its weights
};

// AdvancedOptions::hooks.
struct JobHooks {
  // The machine that "host" stands for and that measures. If it is null, it is the one that this
  // process runs on.
  const machine::Machine* machine = nullptr;
  measure::WorkerOptions worker;  // how the processes that measure are started
  // Measures in the place of workers, for transfer_report(). If it is null, workers do.
  measure::Runner* runner = nullptr;
  // Called with the library before it is put at its path. An error prevents that.
  std::function<Status(const FinishedLibrary&)> inspect;
  // Called after each pass over the graph that ran. It may change the graph.
  std::function<void(const std::string& pass, graph::Graph&)> after_pass;
  // Is told what the job's thread does; may be null.
  PhaseClock* phases = nullptr;
};

// Returns the hooks of the options, or those that change nothing.
[[nodiscard]] const JobHooks& hooks_of(const CompileOptions& options);
// Returns the machine of the hooks or, if they have none, that of the name
// (TargetOptions::machine). It lives as long as the process.
[[nodiscard]] Result<const machine::Machine*> machine_of(const JobHooks* hooks,
                                                         const std::string& name);
[[nodiscard]] Result<const machine::Machine*> machine_of(const CompileOptions& options);
// Checks that the device of the options is one that their machine can measure.
[[nodiscard]] Status check_measurable(const CompileOptions& options);
// Returns an error if the device, the accuracy or the transfer is none that exists. The name of the
// cost model is not checked.
[[nodiscard]] Status check_options(const CompileOptions& options);

}  // namespace hone
