// summaries.h - the results of compiling and tuning, as read-only objects.
#pragma once

#include <nanobind/nanobind.h>

namespace hone::python {

void bind_summaries(nanobind::module_& module);

}  // namespace hone::python
