// summary.h - what was made of a model's tasks, and of the model.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hone {

// One distinct task of the model.
struct TaskSummary {
  uint64_t key = 0;          // compute::task_key
  std::string name;          // of the first node
  std::string kernel_class;  // "conv2d+bias+relu"
  int multiplicity = 1;
  double flops = 0;        // of one occurrence, as its operators are written
  double least_flops = 0;  // of the algorithm that needs the least (Space::least_flops)
  double bytes = 0;        // read and written by it, each once (compute::bytes_moved)
  // Of its schedule: "default", "predicted", "transferred", "shipped", "stored" or "tuned".
  std::string source;
  std::string from;            // the model, or the task of another shape, that was measured
  double seconds = 0;          // measured or stored; 0 if unknown
  double untuned_seconds = 0;  // measured, of the schedule before tuning; 0 if unknown
  double predicted_seconds = 0;
  int trials = 0;
  // Records of its own that do not apply any more: another version's.
  int stale = 0;
  std::string steps;  // the schedule's text

  // Measured, stored or predicted.
  [[nodiscard]] double known_seconds() const { return seconds > 0 ? seconds : predicted_seconds; }
};

// Something that made the finished library wrong, and that it is without.
struct HealedFault {
  std::string pass;  // over the graph, as CompileOptions::skip_passes names it; empty: a schedule
  std::string node;  // the first whose result was wrong
  std::string what;  // "the pass merge_pads", "the schedule of conv2d+relu"
  double error = 0;  // of the output, relative to its largest magnitude
  std::string output;
};

// Of the finished library, run on random inputs and compared with the model as imported.
struct CheckSummary {
  bool checked = false;
  std::string skipped;                    // why it was not
  double seconds = 0;                     // that the check took, with what was done about faults
  int inputs = 0;                         // sets of random inputs
  double tolerance = 0, worst_error = 0;  // relative to an output's largest magnitude
  // Outputs that were not compared element by element, and why: "boxes: compared as a set ...".
  std::vector<std::string> left_out;
  std::vector<HealedFault> healed;
};

struct CompileSummary {
  std::vector<TaskSummary> tasks;
  double seconds = 0;  // from start to the library on disk
  int64_t bytes = 0;   // of the library
  // Of intermediate tensors while it runs; each thread's scratch memory comes on top.
  int64_t arena_bytes = 0;
  int64_t memory_bytes = 0;  // these, weights, code and scratch memory
  // Kernels that a run starts, and how often: what needs nothing of each other may run together.
  int calls = 0, turns = 0;
  int small = 0;  // of them: too short to gain from threads, so they wake none
  CheckSummary check;
  std::set<std::string> files;  // that the model was read from, if it was read
};

}  // namespace hone
