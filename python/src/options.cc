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

// A dimension: a number, the name of a symbol, (min, max) or (min, max, symbol).
DimRange dim_range(nb::handle value) {
  DimRange range;
  if (nb::isinstance<nb::str>(value)) {
    range.symbol = nb::cast<std::string>(value);
  } else if (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value)) {
    const size_t parts = nb::len(value);
    if (parts != 2 && parts != 3) throw nb::cast_error();
    range.min = nb::cast<int64_t>(nb::borrow(value)[0]);
    range.max = nb::cast<int64_t>(nb::borrow(value)[1]);
    if (parts == 3) range.symbol = nb::cast<std::string>(nb::borrow(value)[2]);
  } else {
    range.min = range.max = nb::cast<int64_t>(value);
  }
  return range;
}

void assign(std::map<std::string, ShapeRange>& field, nb::handle value) {
  for (const auto& [name, dims] : nb::cast<nb::dict>(value)) {
    ShapeRange& range = field[nb::cast<std::string>(name)];
    for (const nb::handle dim : nb::cast<nb::list>(nb::list(dims))) range.push_back(dim_range(dim));
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
