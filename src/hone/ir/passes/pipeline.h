// ir/passes/pipeline.h - lists the passes that a program goes through on its way to machine code,
// one list per kind of target, and runs such a list.
//
// A pass turns a program into another one. It accepts every program that ir::verify accepts, and
// its result is accepted by ir::verify and computes the same.
#pragma once

#include <functional>
#include <span>

#include "hone/base/status.h"
#include "hone/ir/passes/pass_parameters.h"

namespace hone::ir {

struct Pass {
  std::string_view name;
  std::string_view reason;  // reason of its place in the list
  Program (*run)(Program, const PassParameters&);
  // Proves what the pass establishes by other means; run where programs are verified.
  Status (*check)(const Program&) = nullptr;
};

// Returns the passes for programs that run on CPUs, or on GPUs. A name may occur twice if the pass
// runs at two places.
[[nodiscard]] std::span<const Pass> cpu_pipeline();
[[nodiscard]] std::span<const Pass> gpu_pipeline();

// Describes one run of a pass. It is valid only during the call that receives it.
struct PassTrace {
  const Pass& pass;
  double seconds;  // processor time
  const Program &before, &after;
  bool changed;
};

struct PipelineOptions {
  PassParameters parameters;
  bool verify = true;                                // verifies the program after each pass
  std::vector<std::string> skip;                     // names of passes to leave out
  std::function<void(const PassTrace&)> trace = {};  // called after each pass, if given
};

// Runs one pass. If the pass leaves a malformed program, the error names the pass.
[[nodiscard]] Result<Program> run_pass(const Pass& pass, Program program,
                                       const PipelineOptions& options = {});
[[nodiscard]] Result<Program> run_pipeline(std::span<const Pass> passes, Program program,
                                           const PipelineOptions& options = {});

}  // namespace hone::ir
