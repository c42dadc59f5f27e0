// records.h - what is measured in databases, as arrays, and how well cost models predict it.
#pragma once

#include <nanobind/nanobind.h>

namespace hone::python {

void bind_records(nanobind::module_& module);

}  // namespace hone::python
