// progress.h - how far a tune has come, as an object that stays when the tune goes on.
#pragma once

#include <hone/progress.h>
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace hone::python {

struct Progress {
  explicit Progress(const TuneProgress& progress);
  double elapsed, budget, left;  // seconds
  int trials;
  double trials_per_second;
  int task;
  std::string stage;
  std::vector<TaskProgress> tasks;
};

void bind_progress(nanobind::module_& module);

}  // namespace hone::python
