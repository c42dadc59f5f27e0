// model.h - compiled models on arrays of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace hone::python {

void bind_model(nanobind::module_& module);

}  // namespace hone::python
