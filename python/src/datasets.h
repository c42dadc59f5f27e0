// datasets.h - making data sets and training cost models from Python.
#pragma once

#include <nanobind/nanobind.h>

namespace hone::python {

void bind_datasets(nanobind::module_& module);

}  // namespace hone::python
