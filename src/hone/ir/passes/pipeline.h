// ir/passes/pipeline.h - the passes that a program goes through on its way to machine code, as one
// list per kind of target, and what runs such a list.
//
// A pass makes a program of a program. It takes every program that ir::verify accepts, and gives
// one that ir::verify accepts and that computes the same.
#pragma once

#include <functional>
#include <span>

#include "hone/base/status.h"
#include "hone/ir/passes/pass_parameters.h"

namespace hone::ir {

struct Pass {
  std::string_view name;
  std::string_view reason;  // of its place in the list
  Program (*run)(Program, const PassParameters&);
};

// For programs that run on CPUs. A name may occur twice: the pass runs at two places.
[[nodiscard]] std::span<const Pass> cpu_pipeline();

// What a pass did; valid during the call that it is given to.
struct PassTrace {
  const Pass& pass;
  double seconds;  // of processor time
  const Program &before, &after;
  bool changed;
};

struct PipelineOptions {
  PassParameters parameters;
  bool verify = true;                                // the program after each pass
  std::vector<std::string> skip;                     // names of passes to leave out
  std::function<void(const PassTrace&)> trace = {};  // called after each pass, if given
};

// The error of a program that a pass left malformed names the pass.
[[nodiscard]] Result<Program> run_pass(const Pass& pass, Program program,
                                       const PipelineOptions& options = {});
[[nodiscard]] Result<Program> run_pipeline(std::span<const Pass> passes, Program program,
                                           const PipelineOptions& options = {});

}  // namespace hone::ir
