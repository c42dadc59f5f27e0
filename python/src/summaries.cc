#include "summaries.h"

#include <hone/tune.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace hone::python {

namespace nb = nanobind;

namespace {

void bind_sizes(nb::module_& module) {
  nb::class_<SizeTable> table(module, "SizeTable",
                              "Where shapes vary from run to run: which schedule of a kernel runs "
                              "at which sizes.");
  nb::class_<SizeTable::Point>(table, "Point", "A size at which schedules were compared.")
      .def_ro("value", &SizeTable::Point::value, "the value of `decided_by`")
      .def_ro("run", &SizeTable::Point::run, "the sizes of such a run, such as 'batch=1, seq=128'");
  nb::class_<SizeTable::Time>(table, "Time", "The time of a schedule at a point.")
      .def_ro("seconds", &SizeTable::Time::seconds, "seconds of one call")
      .def_ro("measured", &SizeTable::Time::measured, "whether it was measured, not predicted");
  nb::class_<SizeTable::Row>(table, "Row", "A schedule that runs at the sizes of an interval.")
      .def_ro("first", &SizeTable::Row::from, "least value of `decided_by` at which it runs")
      .def_ro("last", &SizeTable::Row::most, "largest value of `decided_by` at which it runs")
      .def_ro("steps", &SizeTable::Row::steps, "text of the schedule")
      .def_ro("times", &SizeTable::Row::times,
              "a list of Time, one per point, also for those at which another schedule runs");
  table
      .def_ro("decided_by", &SizeTable::decided_by,
              "what decides, in the sizes of a run, such as 'batch*seq'")
      .def_ro("calls", &SizeTable::calls, "number of times that the model calls this kernel")
      .def_ro("points", &SizeTable::points, "a list of Point, ascending")
      .def_ro("rows", &SizeTable::rows,
              "a list of Row, ascending; the last one is the schedule for the largest size");
}

void bind_parts(nb::module_& module) {
  nb::class_<TaskSummary>(module, "TaskSummary", "A distinct task of a model.")
      .def_ro("key", &TaskSummary::key, "equal for equal tasks, in whatever models")
      .def_ro("name", &TaskSummary::name, "name of its first node")
      .def_ro("kernel_class", &TaskSummary::kernel_class, "such as 'conv2d+bias+relu'")
      .def_ro("multiplicity", &TaskSummary::multiplicity, "how often it occurs in the model")
      .def_ro("flops", &TaskSummary::flops, "FLOPs of one occurrence")
      .def_ro("least_flops", &TaskSummary::least_flops,
              "FLOPs of the algorithm that needs the fewest")
      .def_ro("bytes", &TaskSummary::bytes, "bytes that it reads and writes, each once")
      .def_ro(
          "source", &TaskSummary::source,
          "of its schedule: 'default', 'predicted', 'transferred', 'shipped', 'stored', 'tuned' "
          "or 'host'")
      .def_ro("source_model", &TaskSummary::from,
              "the model, or the task of another shape, that the schedule was measured for")
      .def_ro("seconds", &TaskSummary::seconds, "measured or stored; 0 if unknown")
      .def_ro("untuned_seconds", &TaskSummary::untuned_seconds,
              "measured before tuning; 0 if unknown")
      .def_ro("predicted_seconds", &TaskSummary::predicted_seconds,
              "seconds that the cost model predicts for the schedule")
      .def_ro("trials", &TaskSummary::trials, "number of measurements")
      .def_ro("steps", &TaskSummary::steps, "text of the schedule")
      .def_ro("sizes", &TaskSummary::sizes,
              "a list of SizeTable, one for each kernel whose sizes vary; empty otherwise")
      .def("__repr__", [](const TaskSummary& t) {
        return "TaskSummary(" + t.name + ", " + t.kernel_class + ", " + t.source + ")";
      });
  nb::class_<CheckSummary>(module, "CheckSummary",
                           "The comparison of the library with the model as imported.")
      .def_ro("checked", &CheckSummary::checked, "whether it took place")
      .def_ro("skipped", &CheckSummary::skipped, "why there was none; empty if there was one")
      .def_ro("seconds", &CheckSummary::seconds,
              "for checking, and for finding and leaving out faults")
      .def_ro("tolerance", &CheckSummary::tolerance,
              "largest error that passes, relative to an output's largest magnitude")
      .def_ro("worst_error", &CheckSummary::worst_error, "largest error that was found, likewise")
      .def_ro("left_out", &CheckSummary::left_out,
              "outputs that were not compared element by element, and why");
  nb::class_<TuneSeconds>(module, "TuneSeconds",
                          "The seconds that a tune spent on each kind of work.")
      .def_ro("measuring", &TuneSeconds::measuring, "running candidates and models")
      .def_ro("compiling", &TuneSeconds::compiling, "making machine code, or waiting for it")
      .def_ro("choosing", &TuneSeconds::choosing,
              "predicting, proposing and lowering schedules; teaching cost models")
      .def_ro("packing", &TuneSeconds::packing, "packing weights, linking and writing libraries")
      .def_ro("checking", &TuneSeconds::checking,
              "comparing the library with the model as imported")
      .def_ro("waiting", &TuneSeconds::waiting, "waiting until each thread had a core of its own")
      .def_ro("other", &TuneSeconds::other, "import, passes over the graph, the database")
      .def_ro("overlapped", &TuneSeconds::overlapped,
              "the part of choosing and compiling while candidates were measured");
  nb::class_<FailureSummary>(module, "FailureSummary",
                             "Schedules that could not be measured for one kind of reason.")
      .def_ro("outcome", &FailureSummary::outcome,
              "'compile', 'load', 'crash', 'timeout' or 'wrong answer'")
      .def_ro("count", &FailureSummary::count, "number of these schedules")
      .def_ro("first", &FailureSummary::first, "why the first one failed");
}

}  // namespace

void bind_summaries(nb::module_& module) {
  bind_sizes(module);
  bind_parts(module);
  nb::class_<CompileSummary>(module, "CompileSummary", "What hone.compile did.")
      .def_ro("tasks", &CompileSummary::tasks, "a list of TaskSummary, the distinct tasks")
      .def_ro("seconds", &CompileSummary::seconds, "until the library was on the disk")
      .def_ro("bytes", &CompileSummary::bytes, "size of the library")
      .def_ro("arena_bytes", &CompileSummary::arena_bytes,
              "bytes of intermediate tensors while it runs")
      .def_ro("memory_bytes", &CompileSummary::memory_bytes,
              "bytes of arena, weights, code and scratch memory")
      .def_ro("calls", &CompileSummary::calls, "number of kernels that a run calls")
      .def_ro("check", &CompileSummary::check, "the CheckSummary")
      .def("__repr__", [](const CompileSummary& s) {
        return "CompileSummary(" + std::to_string(s.tasks.size()) + " tasks, " +
               std::to_string(s.seconds) + " s)";
      });
  nb::class_<TuneSummary>(module, "TuneSummary", "What hone.tune did.")
      .def_ro("compile", &TuneSummary::compile, "the CompileSummary of the library")
      .def_ro("trials", &TuneSummary::trials, "number of measurements")
      .def_ro("compiled", &TuneSummary::compiled,
              "number of candidates that were compiled, with those that cannot be")
      .def_ro("search_seconds", &TuneSummary::search_seconds, "seconds of the search alone")
      .def_ro("spent", &TuneSummary::spent, "the TuneSeconds")
      .def_ro("failures", &TuneSummary::failures, "a list of FailureSummary")
      .def_ro("interrupted", &TuneSummary::interrupted, "whether the search ended early")
      .def_ro("model_seconds", &TuneSummary::model_seconds,
              "seconds of a run of the whole model; 0 if not measured")
      .def_ro("untuned_model_seconds", &TuneSummary::untuned_model_seconds,
              "the same as hone.compile would have made it before")
      .def_ro("not_compared", &TuneSummary::not_compared, "why these were not measured")
      .def_ro("kept_untuned", &TuneSummary::kept_untuned,
              "the library is the untuned model, as the tuned one is slower")
      .def_prop_ro(
          "store_problem", [](const TuneSummary& s) { return s.store_status.message(); },
          "the first failure of the database, which ended the search; empty: none")
      .def("__repr__", [](const TuneSummary& s) {
        return "TuneSummary(" + std::to_string(s.compile.tasks.size()) + " tasks, " +
               std::to_string(s.trials) + " trials, " + std::to_string(s.compile.seconds) + " s)";
      });
}

}  // namespace hone::python
