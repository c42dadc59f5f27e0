// progress.h - how far a tune has come, as an object that stays when the tune goes on.
#pragma once

#include <hone/progress.h>
#include <nanobind/nanobind.h>

#include <string>

namespace hone::python {

struct Progress : TuneProgress {
  explicit Progress(const TuneProgress& progress) : TuneProgress(progress), words(progress.stage) {}
  std::string words;  // of `stage`, which points to what may go away
};

void bind_progress(nanobind::module_& module);

}  // namespace hone::python
