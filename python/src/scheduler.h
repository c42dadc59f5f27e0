// scheduler.h - the division of time over tasks (hone/task_scheduler.h) as an object of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace hone::python {

void bind_scheduler(nanobind::module_& module);

}  // namespace hone::python
