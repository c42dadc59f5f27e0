// explain.h - explains one task of a model with one schedule, from its steps to its machine code:
// how the schedule changes the loop program, and where the time should go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hone/code_figures.h"
#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/summary.h"

namespace hone {

struct ExplainOptions {
  CompileOptions compile;
  // The task's key in hexadecimal, or its number in Inspection::distinct, from 1.
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
  bool passes = false;                    // also explain each pass over the loop program
};

// An instruction counts in every class that it belongs to: a multiply-add with a broadcast from
// memory is fma, load and broadcast.
struct InstructionMix {
  int64_t all = 0;
  int64_t fma = 0;         // multiply-adds, dot products included
  int64_t arithmetic = 0;  // other operations on vector registers
  int64_t load = 0;        // reads memory
  int64_t store = 0;       // writes memory
  int64_t broadcast = 0;   // copies one element to all lanes
  int64_t shuffle = 0;     // moves elements between lanes
  int64_t prefetch = 0;
  int64_t scalar = 0;  // uses no vector register: addresses, counters, branches
  int64_t branch = 0;  // jumps, calls and returns, which are scalar as well
};

// A loop of the machine code and how often it runs when the kernel runs once.
struct CountedLoop {
  // The loop of the program that it is, such as "k_1 in 0..256"; empty if none fits.
  std::string name;
  int depth = 0;                        // number of loops around it
  int64_t entries = 0, iterations = 0;  // iterations of all entries together
  // Says who tells how often it runs: the machine code itself, or, where its end depends on what
  // the analysis does not follow, the loop of the program; else one iteration is assumed.
  enum class Source : uint8_t { kCode, kProgram, kAssumed } source = Source::kCode;
  int64_t instructions = 0;  // executed in it, without the loops inside
  // Cycles of one iteration without the loops inside, if all data is in the closest cache: by a
  // list scheduler with the ports of the processor, and by LLVM's model of it (0 if there is none).
  double cycles = 0, mca_cycles = 0;
};

// The instructions that a phase executes when the kernel runs once, all its tiles in one call, by
// its machine code alone: nothing is run. Functions of other libraries that it calls do not count.
struct CountedCode {
  std::string symbol;
  int64_t tiles = 0;
  InstructionMix executed;
  std::vector<CountedLoop> loops;     // in the order of addresses, outer ones first
  double cycles = 0, mca_cycles = 0;  // sums over the loops and the code around them
  int64_t unknown_branches = 0;       // branches within loops that are assumed to go straight on
  std::string failure;                // the reason if the code could not be counted
  // Returns whether nothing was assumed, so that the numbers are exact.
  [[nodiscard]] HONE_API bool exact() const;
};

struct InnerLoop {
  std::string symbol;             // symbol of the phase
  bool is_loop = false;           // false if the function has no loop
  int64_t bytes = 0;              // size of its machine code
  std::vector<std::string> text;  // its instructions
  InstructionMix mix;
  int vector_registers = 0;  // number of different registers
  int vector_bits = 0;       // width of the widest vector register
  int spills = 0;            // reads and writes of stack memory
  // Cycles per iteration if all data is in the closest cache.
  double port_cycles = 0;  // lower bound by the target's numbers for multiply-adds and loads
  double mca_cycles = 0;   // as simulated by LLVM's model of the processor; 0 if there is none
};

// A stage that runs with the model, and its measures according to the cost model's analysis.
struct ExplainedStage {
  std::string name;
  double body_cycles = 0;  // cycles of one pass through the loops that are unrolled or vectorized
  double registers = 0;    // vector registers that these need
  double compute_cycles = 0;  // cycles of all iterations on one core
  std::vector<double> bytes;  // moved into each cache from the next level; one per cache
};

// A launch of a GPU: a stage at root with everything that is computed inside it, and its measures
// according to the cost model's analysis.
struct ExplainedLaunch {
  std::string name;  // stage
  double blocks = 1;
  double threads = 1;          // of a block
  double registers = 0;        // of a thread; an estimate
  double shared_bytes = 0;     // of a block
  double resident_blocks = 0;  // on one multiprocessor; 0 if a block does not fit the device
  double memory_bytes = 0;     // from and to the device's memory
  // Seconds by each limit alone: arithmetic, load and store units, L2, waiting, memory; and of the
  // launch.
  double arithmetic_seconds = 0, units_seconds = 0, l2_seconds = 0, latency_seconds = 0;
  double memory_seconds = 0, seconds = 0;
  // What takes longest: "arithmetic", "matrix products", "load units", "L2", "waiting", "memory",
  // or "launch" if all of them are shorter than the launch itself.
  std::string_view limit;
};

// A pass of the lowering and its effect.
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
  std::vector<InnerLoop> loops;       // one per phase that runs with the model
  std::vector<CountedCode> counts;    // of a CPU: one per phase that runs with the model
  int64_t text_bytes = 0, scratch_bytes = 0;
  int registers_needed = 0;               // number of vector registers that the register tile needs
  std::vector<ExplainedStage> stages;     // for a CPU
  std::vector<ExplainedLaunch> launches;  // for a GPU
  std::vector<double> level_seconds;      // seconds of one core for moving data into each cache
  double compute_seconds = 0;             // seconds of one core for computing
  std::optional<CodeFigures> code;        // of a GPU, if its binary says
  std::optional<MeasuredTime> measured;   // nothing if it never ran and was not to be run now
};

// Explains a task of the model at a path. If `model` is empty, the task is one of the database. To
// measure takes about a second.
[[nodiscard]] HONE_API Result<Explanation> explain(const std::string& model,
                                                   const ExplainOptions& options);

}  // namespace hone
