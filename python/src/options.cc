#include "options.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
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

template <typename Options>
struct Option {
  const char* name;
  bool tunes;  // of SearchOptions
  void (*set)(Options&, nb::handle);
};

constexpr Option<TuneOptions> kOptions[] = {
#include "options.inc"
};
constexpr Option<DatasetOptions> kDatasetOptions[] = {
#include "dataset_options.inc"
};
constexpr Option<TrainOptions> kTrainOptions[] = {
#include "train_options.inc"
};

// Sets the options that the keywords say. `call` is how a user asks what there is, and `check` may
// refuse an option.
template <typename Options, size_t kCount>
void set_options(const Option<Options> (&known)[kCount], const nb::dict& keywords,
                 const std::string& call, const auto& check, Options& options) {
  for (const auto& [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    const Option<Options>* found = nullptr;
    for (const Option<Options>& option : known) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr)
      raise_input_error("there is no option '" + name + "', expected one of " + call);
    check(*found);
    try {
      found->set(options, value);
    } catch (const std::bad_cast&) {
      raise_input_error("the option '" + name + "' is of the Python type " +
                        nb::type_name(value.type()).c_str() + ", expected what " + call + "['" +
                        name + "'] says");
    }
  }
}

constexpr auto kTakesAll = [](const auto&) {};

}  // namespace

TuneOptions options_from(const nb::dict& keywords, bool tunes) {
  TuneOptions options;
  const auto check = [&](const Option<TuneOptions>& option) {
    if (option.tunes && !tunes)
      raise_input_error("'" + std::string(option.name) +
                        "' is an option of hone.tune, which hone.compile does not take");
  };
  set_options(kOptions, keywords, "hone.options()", check, options);
  return options;
}

SearchOptions search_options_from(const nb::dict& keywords) {
  TuneOptions options;
  const auto check = [](const Option<TuneOptions>& option) {
    if (!option.tunes)
      raise_input_error("'" + std::string(option.name) +
                        "' is an option of hone.tasks, which Task.tune does not take");
  };
  set_options(kOptions, keywords, "hone.options()", check, options);
  return options.search;
}

DatasetOptions dataset_options_from(const nb::dict& keywords) {
  DatasetOptions options;
  set_options(kDatasetOptions, keywords, "hone.options(of='make_dataset')", kTakesAll, options);
  return options;
}

TrainOptions train_options_from(const nb::dict& keywords) {
  TrainOptions options;
  set_options(kTrainOptions, keywords, "hone.options(of='train')", kTakesAll, options);
  return options;
}

}  // namespace hone::python
