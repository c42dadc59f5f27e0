// explain.h - one task of a model with one schedule, from its steps to its machine code: what the
// schedule makes of it and where the time should go.
#pragma once

#include <optional>

#include "hone/analysis/cpu_measure.h"
#include "hone/codegen/llvm/inner_loop.h"
#include "hone/measure/worker_process.h"
#include "hone/session/compile_options.h"
#include "hone/session/summary.h"

namespace hone {

struct ExplainOptions {
  CompileOptions compile;
  std::string task;  // its key in hexadecimal, or its number as in Inspection::summaries, from 1
  enum class Schedule : uint8_t {
    kKnown,    // the best stored or transferred one, else the best predicted: as `compile`
    kBest,     // the best stored one, or an error
    kDefault,  // by rule of thumb
    kGiven,    // `steps`
  };
  Schedule schedule = Schedule::kKnown;
  std::string steps;  // one a line, or with semicolons between
  enum class Measure : uint8_t { kIfUnknown, kAlways, kNever };
  Measure measure = Measure::kIfUnknown;  // to run it now, in a worker
  measure::WorkerOptions worker;
  bool passes = false;  // what each pass over the loop program does, too
};

// A stage that runs with the model, as the cost model's analysis sees it.
struct ExplainedStage {
  std::string name;
  analysis::StageMeasure measure;
};

// Says what a pass of the lowering did (ir/passes/pipeline.h).
struct ExplainedPass {
  std::string name, reason;
  double seconds = 0;
  std::string program;  // after it, printed; empty: it changed nothing
};

struct MeasuredTime {
  double seconds = 0, low = 0, high = 0;  // robust centre and its interval
  int samples = 0;
  bool now = false;  // else a record of the database
  bool verified = false;
  std::string failure;  // why there is no time although it was run now: "crash: ..."
};

struct Explanation {
  TaskSummary task;  // predicted_seconds are those of this schedule
  uint64_t key = 0;
  int threads = 1;
  std::string program;                // printed
  std::string raw_program;            // before the passes; empty: not asked for
  std::vector<ExplainedPass> passes;  // empty: not asked for
  std::vector<codegen::Phase> phases;
  std::vector<codegen::InnerLoop> loops;  // one per phase that is no prepare phase
  int64_t text_bytes = 0, scratch_bytes = 0;
  int registers_needed = 0;  // by the register tile
  std::vector<ExplainedStage> stages;
  std::vector<double> level_seconds;     // of moving data into each cache, by one core
  double compute_seconds = 0;            // of one core
  std::optional<MeasuredTime> measured;  // nothing: never run, and not to be run here
};

// `model`: a path; empty: the task is one of the database.
[[nodiscard]] Result<Explanation> explain(const std::string& model, const ExplainOptions& options);

}  // namespace hone
