// summary.h - the results of compiling a model: its tasks with their schedules, the check of the
// library, and the model as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hone {

// Where shapes vary from run to run: which schedule of a kernel runs at which sizes.
struct SizeTable {
  // A size at which schedules were compared. All sizes of inputs grow together from the smallest to
  // the largest.
  struct Point {
    int64_t value = 0;  // the value of `decided_by`
    std::string run;    // such as "batch=1, seq=128"
  };
  // The seconds of a schedule at a point, measured or predicted.
  struct Time {
    double seconds = 0;
    bool measured = false;
  };
  // A schedule that runs where `decided_by` is `from` to `most`.
  struct Row {
    int64_t from = 0, most = 0;
    std::string steps;        // text of the schedule
    std::vector<Time> times;  // one per point, also for those at which another schedule runs
  };
  // What decides, in the sizes of a run: "batch*seq".
  std::string decided_by;
  int calls = 0;              // number of times that the model calls this kernel
  std::vector<Point> points;  // ascending
  std::vector<Row> rows;      // ascending; the last one is the schedule for the largest size
  // Returns whether all rows were measured at a point.
  [[nodiscard]] bool measured_at(size_t point) const {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.times[point].measured; });
  }
  // Returns the number of points at which all rows were measured.
  [[nodiscard]] size_t measured_points() const {
    size_t count = 0;
    for (size_t p = 0; p < points.size(); ++p) count += measured_at(p) ? 1 : 0;
    return count;
  }
};

// A distinct task of the model.
struct TaskSummary {
  uint64_t key = 0;          // equal for equal tasks, in whatever models
  std::string name;          // name of its first node
  std::string kernel_class;  // such as "conv2d+bias+relu"
  int multiplicity = 1;      // how often it occurs in the model
  double flops = 0;          // FLOPs of one occurrence, as its operators are written
  double least_flops = 0;    // FLOPs of the algorithm that needs the fewest
  double bytes = 0;          // bytes that it reads and writes, each counted once
  // The type of MatrixRate (device.h) whose instructions may compute it on the device; empty: none.
  std::string matrix;
  // The source of its schedule: "default", "predicted", "transferred", "shipped", "stored" or
  // "tuned"; "host" if the device cannot run the task, which the host does instead.
  std::string source;
  // The model for which the schedule was measured, or the task of another shape.
  std::string from;
  double seconds = 0;          // measured or stored; 0 if unknown
  double untuned_seconds = 0;  // measured with the schedule before tuning; 0 if unknown
  double predicted_seconds = 0;
  int trials = 0;
  // The number of its records that do not apply any more, because they are of another version.
  int stale = 0;
  std::string steps;  // text of the schedule
  // A table for each kernel of the task of which smaller runs need less: calls of equal tasks have
  // different kernels if other parts of their results are needed. There is none on a GPU, or if
  // memory is limited (TargetOptions::max_memory): there one schedule runs at all sizes.
  std::vector<SizeTable> sizes;

  // Returns the seconds that were measured or stored, else those that are predicted.
  [[nodiscard]] double known_seconds() const { return seconds > 0 ? seconds : predicted_seconds; }
};

// The loop programs of a task (docs/formats/ir.md), with its schedule and with the one before it
// was tuned. A text is empty if it is not known.
struct TaskPrograms {
  std::string program;
  std::string untuned_steps, untuned_program;
};

// A fault that made the finished library wrong, and that was left out.
struct HealedFault {
  // The name of a pass as in CompileOptions::skip_passes; empty for a schedule.
  std::string pass;
  std::string node;    // first node whose result was wrong
  std::string what;    // text such as "the pass merge_pads" or "the schedule of conv2d+relu"
  double error = 0;    // error of the output, relative to its largest magnitude
  std::string output;  // name of the output
};

// The result of running the finished library on random inputs and comparing it with the model as
// imported.
struct CheckSummary {
  bool checked = false;
  std::string skipped;  // why there was no check; empty if there was one
  double seconds = 0;   // seconds for checking and for finding and leaving out faults
  int inputs = 0;       // number of sets of random inputs
  double tolerance = 0, worst_error = 0;  // relative to an output's largest magnitude
  // The outputs that were not compared element by element, each with the reason, such as "boxes:
  // compared as a set ...".
  std::vector<std::string> left_out;
  std::vector<HealedFault> healed;
};

// The choice that a second cost model makes among the best predicted schedules
// (AdvancedOptions::refine).
struct RefineSummary {
  int compared = 0, changed = 0;  // number of kernels
  int candidates = 0;             // number of schedules that it predicted
  double seconds = 0;             // seconds that this took
};

// An input whose shape differs from run to run.
struct InputRange {
  std::string name;
  std::string shape;  // the smallest and the largest of each extent: "1..8x3x160..320"
};

struct CompileSummary {
  std::vector<TaskSummary> tasks;
  double seconds = 0;  // from the start until the library is on the disk
  int64_t bytes = 0;   // size of the library
  // The bytes of intermediate tensors while it runs, without the scratch memory of each thread.
  int64_t arena_bytes = 0;
  int64_t memory_bytes = 0;  // arena, weights, code, scratch; arrays on a GPU
  // The number of kernels that a run calls, and the number of groups of them that run one after the
  // other: kernels that do not depend on each other may run together.
  int calls = 0, turns = 0;
  // The number of these kernels that run on one thread because they are too short to gain from
  // more.
  int small = 0;
  RefineSummary refined;
  CheckSummary check;
  std::vector<InputRange> ranges;
  // What gives the same ranges, with other ends another library: "--shape batch=1..8 --shape
  // seq=1..512". It is empty if no shape varies.
  std::string range_options;
  std::set<std::string> files;  // files that the model was read from, if it was read
};

}  // namespace hone
