// explain.h - explains one task of a model with one schedule, from its steps to its machine code:
// how the schedule changes the loop program, and where the time should go.
#pragma once

#include <optional>

#include "hone/analysis/cpu_measure.h"
#include "hone/backend/cpu/inner_loop.h"
#include "hone/measure/worker_process.h"
#include "hone/session/compile_options.h"
#include "hone/session/summary.h"

namespace hone {

struct ExplainOptions {
  CompileOptions compile;
  // The task's key in hexadecimal, or its number in Inspection::summaries, from 1.
  std::string task;
  enum class Schedule : uint8_t {
    kKnown,    // the best stored or transferred one, else the best predicted, as in compile()
    kBest,     // the best stored one; an error if there is none
    kDefault,  // the default of the task's space, which a rule of thumb chooses
    kGiven,    // the one in `steps`
  };
  Schedule schedule = Schedule::kKnown;
  std::string steps;  // one per line, or separated by semicolons
  enum class Measure : uint8_t { kIfUnknown, kAlways, kNever };
  Measure measure = Measure::kIfUnknown;  // when to run the kernel now, in a worker
  measure::WorkerOptions worker;
  bool passes = false;  // also explain each pass over the loop program
};

// A stage that runs with the model, and its measures according to the cost model's analysis.
struct ExplainedStage {
  std::string name;
  analysis::StageMeasure measure;
};

// A pass of the lowering (ir/passes/pipeline.h) and its effect.
struct ExplainedPass {
  std::string name, reason;
  double seconds = 0;
  std::string program;  // printed after the pass; empty if the pass changed nothing
};

struct MeasuredTime {
  double seconds = 0, low = 0, high = 0;  // robust centre and its interval
  int samples = 0;
  // True if it was measured now, false if it is from a record of the database.
  bool now = false;
  bool verified = false;
  // The reason why there is no time although the kernel was run now, such as "crash: ...".
  std::string failure;
};

struct Explanation {
  TaskSummary task;  // predicted_seconds is for this schedule
  uint64_t key = 0;
  int threads = 1;
  std::string program;      // printed after all passes
  std::string raw_program;  // printed before the passes; empty unless ExplainOptions::passes
  std::vector<ExplainedPass> passes;  // empty unless ExplainOptions::passes
  std::vector<backend::cpu::Phase> phases;
  std::vector<backend::cpu::InnerLoop> loops;  // one per phase that runs with the model
  int64_t text_bytes = 0, scratch_bytes = 0;
  int registers_needed = 0;  // number of vector registers that the register tile needs
  std::vector<ExplainedStage> stages;
  std::vector<double> level_seconds;     // seconds of one core for moving data into each cache
  double compute_seconds = 0;            // seconds of one core for computing
  std::optional<MeasuredTime> measured;  // nothing if it never ran and was not to be run now
};

// Explains a task of the model at a path. If `model` is empty, the task is one of the database.
[[nodiscard]] Result<Explanation> explain(const std::string& model, const ExplainOptions& options);

}  // namespace hone
