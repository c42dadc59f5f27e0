#include "options.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "errors.h"

namespace hone::python {

namespace nb = nanobind;

namespace {

template <typename T>
void assign(T& field, nb::handle value) {
  field = nb::cast<T>(value);
}

void assign(std::string& field, nb::handle value) {
  const bool is_path = nb::hasattr(value, "__fspath__");
  field = nb::cast<std::string>(is_path ? value.attr("__fspath__")() : nb::borrow(value));
}

void assign(std::map<std::string, Tensor>& field, nb::handle value) {
  for (const auto& [name, array] : nb::cast<nb::dict>(value)) {
    const auto key = nb::cast<std::string>(name);
    field[key] = copy_of(array, ("the value of '" + key + "'").c_str());
  }
}

struct Option {
  const char* name;
  bool tunes;  // of hone.tune only
  void (*set)(TuneOptions&, nb::handle);
};

constexpr Option kOptions[] = {
#include "options.inc"
};

}  // namespace

TuneOptions options_from(const nb::dict& keywords, bool tunes) {
  TuneOptions options;
  for (const auto& [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    const Option* found = nullptr;
    for (const Option& option : kOptions) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr)
      raise_input_error("there is no option '" + name + "', expected one of hone.options()");
    if (found->tunes && !tunes)
      raise_input_error("'" + name +
                        "' is an option of hone.tune, which hone.compile does not take");
    try {
      found->set(options, value);
    } catch (const std::bad_cast&) {
      raise_input_error("the option '" + name + "' is of the Python type " +
                        nb::type_name(value.type()).c_str() + ", expected what hone.options()['" +
                        name + "'] says");
    }
  }
  return options;
}

}  // namespace hone::python
