// options.h - keyword arguments as options of jobs.
#pragma once

#include <hone/dataset.h>
#include <hone/train.h>
#include <hone/tune.h>
#include <nanobind/nanobind.h>

namespace hone::python {

// Returns the options that the keyword arguments say; the names are those of the fields in
// hone/options.h. With `tunes`, those of SearchOptions are among them. An unknown name or a value
// of a wrong type raises InputError, which names it.
[[nodiscard]] TuneOptions options_from(const nanobind::dict& keywords, bool tunes);
// Returns the options of a search alone, likewise: those of CompileOptions are refused.
[[nodiscard]] SearchOptions search_options_from(const nanobind::dict& keywords);
// Returns the fields of these structs, and of those within them, likewise.
[[nodiscard]] DatasetOptions dataset_options_from(const nanobind::dict& keywords);
[[nodiscard]] TrainOptions train_options_from(const nanobind::dict& keywords);

}  // namespace hone::python
