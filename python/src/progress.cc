#include "progress.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace hone::python {

namespace nb = nanobind;

void bind_progress(nb::module_& module) {
  nb::class_<TaskProgress>(module, "TaskProgress", "How far one task of a tune has come.")
      .def_ro("name", &TaskProgress::name, "name of the task's first node")
      .def_ro("multiplicity", &TaskProgress::multiplicity, "how often it occurs in the model")
      .def_ro("untuned_seconds", &TaskProgress::untuned_seconds, "0: not measured yet")
      .def_ro("best_seconds", &TaskProgress::best_seconds, "seconds of the fastest schedule so far")
      .def_ro("trials", &TaskProgress::trials, "measurements so far")
      .def_ro("bound_seconds", &TaskProgress::bound_seconds,
              "seconds that no schedule is expected to beat")
      .def_ro("share", &TaskProgress::share, "share of the model's time")
      .def_ro("expected_gain", &TaskProgress::expected_gain,
              "share of the model's time that ten seconds more on it may save")
      .def_ro("at_limit", &TaskProgress::at_limit, "it gets no more time");
  nb::class_<Progress>(module, "TuneProgress", "How far a tune has come.")
      .def_ro("elapsed", &TuneProgress::elapsed, "seconds since the start")
      .def_ro("budget", &TuneProgress::budget, "seconds that it may take")
      .def_ro("left", &TuneProgress::left, "seconds until the end, as it looks now")
      .def_ro("trials", &TuneProgress::trials, "measurements so far")
      .def_ro("trials_per_second", &TuneProgress::trials_per_second,
              "measurements a second since the search began")
      .def_ro("task", &TuneProgress::task, "index of the task that was measured last; -1: none")
      .def_ro("stage", &Progress::words,
              "the work before or after the search, in words; empty during the search")
      .def_ro("tasks", &TuneProgress::tasks, "all tasks of the model");
}

}  // namespace hone::python
