// tasks.h - tasks of models, and the spaces of their schedules, as objects of Python.
#pragma once

#include <hone/model_task.h>
#include <nanobind/nanobind.h>

namespace hone::python {

void bind_tasks(nanobind::module_& module);

// Returns a task as an object of Python.
nanobind::object task_object(const ModelTask& task);

}  // namespace hone::python
