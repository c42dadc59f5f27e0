// module.cc - the module hone._native: the C++ interface as far as hone/__init__.py needs it.
#include <hone/compile.h>
#include <hone/cost_models.h>
#include <hone/device.h>
#include <hone/tune.h>
#include <hone/version.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "datasets.h"
#include "errors.h"
#include "jobs.h"
#include "model.h"
#include "options.h"
#include "own_parts.h"
#include "progress.h"
#include "python_calls.h"
#include "records.h"
#include "scheduler.h"
#include "summaries.h"
#include "tasks.h"

namespace hone::python {

namespace nb = nanobind;

namespace {

[[noreturn]] void raise_as(const char* name, const std::string& message) {
  const nb::object type = nb::module_::import_("hone.errors").attr(name);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

CompileSummary compile_model(const std::string& model, const std::string& output,
                             const nb::dict& keywords) {
  TuneOptions options = options_from(keywords, false);
  return run_job<CompileSummary>(options, AtTheEnd::kWritesNothing, nb::none(),
                                 [&] { return hone::compile(model, output, options.compile); });
}

TuneSummary tune_model(const std::string& model, const std::string& output,
                       const nb::dict& keywords, nb::handle on_progress, nb::handle search,
                       nb::handle cost_model) {
  TuneOptions options = options_from(keywords, true);
  PythonCalls calls;
  std::optional<PythonStrategy> own_strategy;
  std::optional<PythonCostModel> own_cost_model;
  OwnParts parts;
  if (!search.is_none()) parts.strategy = &own_strategy.emplace(search, calls);
  if (!cost_model.is_none()) parts.cost_model = &own_cost_model.emplace(cost_model, calls);
  TuneSummary summary = run_job<TuneSummary>(
      options, AtTheEnd::kWritesTheBest, on_progress,
      [&] { return hone::tune(model, output, options, parts); }, &calls);
  if (!parts.failure.ok()) raise(parts.failure);
  return summary;
}

std::string device_key(const std::string& name) { return value_or_raise(find_device(name)).key; }

}  // namespace

void raise(const Status& status) {
  switch (status.code()) {
    case Code::kInvalid:
    case Code::kNotFound: raise_as("InputError", status.message());
    case Code::kUnsupported: raise_as("UnsupportedError", status.message());
    case Code::kCancelled:
      PyErr_SetString(PyExc_KeyboardInterrupt, status.message().c_str());
      throw nb::python_error();
    default: raise_as("InternalError", status.message());
  }
}

void raise_input_error(const std::string& message) { raise_as("InputError", message); }

}  // namespace hone::python

NB_MODULE(_native, module) {
  using namespace hone::python;
  namespace nb = nanobind;
  nb::set_leak_warnings(false);  // objects may live until the interpreter ends
  bind_model(module);
  bind_progress(module);
  bind_summaries(module);
  bind_tasks(module);
  bind_records(module);
  bind_datasets(module);
  bind_scheduler(module);
  module.def("compile", &compile_model, nb::arg("model"), nb::arg("output"), nb::arg("options"));
  module.def("tune", &tune_model, nb::arg("model"), nb::arg("output"), nb::arg("options"),
             nb::arg("on_progress").none(), nb::arg("search").none(), nb::arg("cost_model").none());
  module.def("end_all_jobs", &end_all_jobs);
  module.def("forget_jobs", &forget_jobs);
  module.def("call_seconds", &call_seconds);
  module.def("version", [] { return std::string(hone::version()); });
  module.def("device_names", &hone::device_names);
  module.def("device_key", &device_key, nb::arg("name"));
  module.def("strategy_names", &hone::strategy_names);
  module.def("cost_model_names", &hone::cost_model_names);
}
