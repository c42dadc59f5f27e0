// measure/job.h - what a runner is asked (a candidate and how to run it) and what it answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/codegen/llvm/compiler.h"
#include "hone/ir/stmt.h"
#include "hone/measure/operands.h"
#include "hone/measure/timing.h"
#include "hone/trial/bounds.h"
#include "hone/trial/outcome.h"

namespace hone::measure {

// One buffer of the kernel, in the order of the program's params.
struct Argument {
  ir::Role role = ir::Role::kInput;
  int64_t bytes = 0;
  int operand =
      -1;  // its place in Job::operands; -1: memory of this candidate (kPacked, kWorkspace)
};

// Where a kernel's constants are when it runs, the rest of its model having run before.
enum class Weights : uint8_t {
  kWarm,    // in the caches that the run before left them in
  kShared,  // in the cache that all cores share: their own have been swept
  kMemory,  // in no cache
};

struct Job {
  uint64_t id = 0;                     // the caller's; the answer carries it
  std::string object, prepare_object;  // codegen::ObjectCode
  std::vector<codegen::Phase> phases;
  int64_t scratch_bytes = 0;
  std::vector<Argument> arguments;
  std::shared_ptr<const Operands> operands;
  int threads = 1;
  TimingOptions timing;
  Weights weights = Weights::kWarm;
  int64_t own_cache_bytes = 0;  // of a core, to be swept if weights are in the shared cache
  double tolerance = 0;         // of the greatest expected value; 0: the output is not checked
  double timeout_seconds = 10;
  bool count_bounds = false;  // by some more runs, if this machine can
  std::string label;          // for messages and for a null runner's cost
  // Another candidate for the same operands: both are timed in turns (a duel), by `duel`.
  std::shared_ptr<const Job> rival;
  trial::DuelOptions duel;
  // Each runs in the other's memory: where that lies may cost the same code a tenth of its time.
  bool swap_memory = false;
};

struct Measurement {
  uint64_t id = 0;
  trial::Outcome outcome = trial::Outcome::kOk;
  std::string message;    // why, if not ok
  trial::Timing timing;   // of an ok one
  trial::Duel duel;       // against Job::rival, if there is one
  bool verified = false;  // the output was compared and is right
  double error = 0;       // greatest difference / greatest expected value, if compared
  std::optional<trial::CountedBounds> bounds;  // if Job::count_bounds
};

[[nodiscard]] inline Measurement failed(uint64_t id, trial::Outcome outcome, std::string message) {
  return {.id = id, .outcome = outcome, .message = std::move(message)};
}

}  // namespace hone::measure
