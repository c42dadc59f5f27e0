// measure/job.h - a job for a runner (a candidate and how to run it), and the runner's answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/backend/executable.h"
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
      -1;  // index in Job::operands; -1 for memory of this candidate (kPacked, kWorkspace)
};

// The place of a kernel's constants when it runs, if the rest of its model has run before.
enum class Weights : uint8_t {
  kWarm,    // in the caches, as the run before left them
  kShared,  // in the cache that all cores share, as the cores' own caches were swept
  kMemory,  // in no cache; a device has them there in either case that is not warm
};

struct Job {
  uint64_t id = 0;  // chosen by the caller; the answer repeats it
  backend::Executable executable;
  std::vector<Argument> arguments;
  std::shared_ptr<const Operands> operands;
  int threads = 1;
  TimingOptions timing;
  Weights weights = Weights::kWarm;
  // Size of a core's own caches, which are swept if weights are in the shared cache; of a device,
  // that of its L2.
  int64_t own_cache_bytes = 0;
  double tolerance = 0;  // relative to the largest expected value; 0 if the output is not checked
  double timeout_seconds = 10;
  bool count_bounds = false;  // counts hardware events in some more runs, if this machine can
  std::string label;          // for messages, and for the cost of a null runner
  // Another candidate with the same operands. Both are timed alternately (a duel), by `duel`.
  std::shared_ptr<const Job> rival;
  trial::DuelOptions duel;
  // Each candidate runs in the other's memory, as its place may change the time of the same code by
  // a tenth.
  bool swap_memory = false;
};

struct Measurement {
  uint64_t id = 0;
  trial::Outcome outcome = trial::Outcome::kOk;
  std::string message;    // reason, if the outcome is not ok
  trial::Timing timing;   // set if the outcome is ok
  trial::Duel duel;       // duel with Job::rival, if there is one
  bool verified = false;  // the output was compared with the expected one and is right
  double error = 0;       // largest difference / largest expected value, if compared
  std::optional<trial::CountedBounds> bounds;  // set if Job::count_bounds
};

[[nodiscard]] inline Measurement failed(uint64_t id, trial::Outcome outcome, std::string message) {
  return {.id = id, .outcome = outcome, .message = std::move(message)};
}

}  // namespace hone::measure
