#include "model.h"

#include <hone/model.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>

#include "arrays.h"
#include "errors.h"
#include "jobs.h"

namespace hone::python {
namespace {

// A loaded model. It is of the process that loaded it, and one thread at a time runs it.
class LoadedModel {
 public:
  explicit LoadedModel(Model model) : model_(std::make_unique<Model>(std::move(model))) {}
  ~LoadedModel() {
    // A process that was forked has the memory, but not the threads: nothing can end them there.
    if (getpid() != process_) static_cast<void>(model_.release());
  }
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  // Holds the model for one call at a time. A second one raises InputError.
  class Use {
   public:
    explicit Use(LoadedModel& model) : model_(model) {
      if (getpid() != model.process_)
        raise_input_error(
            "the model was loaded before this process was forked: load it again here");
      if (model.in_use_.exchange(true))
        raise_input_error("the model is being run by another thread: load it once for each");
    }
    ~Use() { model_.in_use_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Model* operator->() const { return model_.model_.get(); }

   private:
    LoadedModel& model_;
  };

  [[nodiscard]] const std::vector<ModelTensor>& inputs() const { return model_->inputs(); }
  [[nodiscard]] const std::vector<ModelTensor>& outputs() const { return model_->outputs(); }
  // Takes the inputs in their order. `out` has an array or None for each output, or is None.
  [[nodiscard]] nb::list run(const std::vector<nb::object>& arrays, nb::handle out);

 private:
  std::unique_ptr<Model> model_;
  const pid_t process_ = getpid();
  std::atomic<bool> in_use_ = false;
};

// An array that was given for an output, without the elements beyond the actual shape.
nb::object cut_to(const nb::object& array, const Shape& given, const Shape& actual) {
  if (given == actual) return array;
  const nb::object flat = array.attr("reshape")(-1);
  return flat[nb::slice(static_cast<Py_ssize_t>(num_elements(actual)))].attr("reshape")(
      nb::tuple(nb::cast(actual)));
}

nb::list LoadedModel::run(const std::vector<nb::object>& arrays, nb::handle out) {
  const Use model(*this);
  std::vector<BorrowedArray> in, given;
  std::vector<const void*> sources;
  ArrayKind kind = ArrayKind::kNumpy;
  const TensorType tensors;
  for (size_t i = 0; i < arrays.size(); ++i) {
    in.push_back(BorrowedArray::to_read(arrays[i], inputs()[i], "input"));
    sources.push_back(in.back().data());
    if (kind == ArrayKind::kNumpy && tensors.holds(arrays[i])) kind = ArrayKind::kTorch;
    if (inputs()[i].dims.empty()) continue;
    const Status set = model->set_input_shape(static_cast<int>(i), in.back().shape());
    if (!set.ok()) raise_input_error(set.message());
  }
  std::vector<std::optional<ResultArray>> made(outputs().size());
  std::vector<nb::object> results(outputs().size());
  std::vector<Shape> shapes;
  std::vector<void*> targets;
  if (!out.is_none() && (!nb::isinstance<nb::sequence>(out) || nb::len(out) != results.size()))
    raise_input_error("out: expected a list with an array or None for each of the " +
                      std::to_string(results.size()) + " outputs");
  for (size_t i = 0; i < results.size(); ++i) {
    const ModelTensor& output = outputs()[i];
    shapes.push_back(output.dims.empty()
                         ? output.shape
                         : value_or_raise(model->output_shape(static_cast<int>(i))));
    if (!out.is_none()) results[i] = nb::borrow(out)[i];
    if (results[i].is_valid() && !results[i].is_none()) {
      given.push_back(BorrowedArray::to_write(results[i], output, shapes[i], "output"));
      targets.push_back(given.back().data());
    } else {
      targets.push_back(made[i].emplace(output, shapes[i]).data());
    }
  }
  Status status;
  {
    const RunningModel running;
    const nb::gil_scoped_release others_may_run;
    status = model->run(sources, targets);
  }
  if (!status.ok()) raise(status);
  nb::list list;
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape actual = value_or_raise(model->output_shape(static_cast<int>(i)));
    list.append(made[i] ? made[i]->to_python(actual, kind) : cut_to(results[i], shapes[i], actual));
  }
  return list;
}

// The inputs in their order, from those by position and those by name.
std::vector<nb::object> in_order(const LoadedModel& model, nb::handle positional,
                                 const nb::dict& named) {
  const std::vector<ModelTensor>& inputs = model.inputs();
  std::vector<nb::object> arrays(inputs.size());
  const size_t count = nb::len(positional);
  if (count > inputs.size())
    raise_input_error("found " + std::to_string(count) + " inputs, expected " +
                      std::to_string(inputs.size()));
  for (size_t i = 0; i < count; ++i) arrays[i] = nb::borrow(positional)[i];
  for (const auto& [key, array] : named) {
    std::string name;
    if (!nb::try_cast(key, name))
      raise_input_error("an input is named by the Python type " +
                        std::string(nb::type_name(key.type()).c_str()) + ", expected a text");
    size_t at = 0;
    while (at < inputs.size() && inputs[at].name != name) ++at;
    if (at == inputs.size()) raise_input_error("the model has no input '" + name + "'");
    if (arrays[at].is_valid()) raise_input_error("input '" + name + "' is given twice");
    arrays[at] = nb::borrow(array);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!arrays[i].is_valid()) raise_input_error("input '" + inputs[i].name + "' is missing");
  }
  return arrays;
}

nb::list run(LoadedModel& model, nb::handle inputs, nb::handle out) {
  const bool by_name = nb::isinstance<nb::dict>(inputs);
  if (!by_name && !nb::isinstance<nb::list>(inputs) && !nb::isinstance<nb::tuple>(inputs))
    raise_input_error("inputs: expected a list or tuple of arrays, or a dict with names");
  // Another thread may change a list or dict while arrays are looked at, so a copy keeps them.
  const nb::object kept =
      nb::steal(by_name ? PyDict_Copy(inputs.ptr()) : PySequence_Tuple(inputs.ptr()));
  return by_name ? model.run(in_order(model, nb::tuple(), nb::cast<nb::dict>(kept)), out)
                 : model.run(in_order(model, kept, nb::dict()), out);
}

nb::object call(LoadedModel& model, const nb::args& arrays, const nb::kwargs& named) {
  const nb::list results = model.run(in_order(model, arrays, named), nb::none());
  return nb::len(results) == 1 ? nb::object(results[0]) : nb::object(nb::tuple(results));
}

std::unique_ptr<LoadedModel> load_model(const std::string& path, int threads, double time_limit) {
  std::optional<Result<Model>> loaded;
  {
    const RunningModel running;
    const nb::gil_scoped_release others_may_run;
    loaded.emplace(Model::load(path, {.num_threads = threads, .time_limit = time_limit}));
  }
  return std::make_unique<LoadedModel>(value_or_raise(std::move(*loaded)));
}

nb::list step_times(LoadedModel& model) {
  const LoadedModel::Use used(model);
  nb::list list;
  for (const StepTime& step : used->step_times()) list.append(nb::cast(step));
  return list;
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<ModelTensor>(module, "TensorInfo", "An input or output of a model.")
      .def_ro("name", &ModelTensor::name, "as in the ONNX file")
      .def_prop_ro(
          "dtype", [](const ModelTensor& t) { return std::string(dtype_name(t.dtype)); },
          "the element type, as Hone names it: 'f32', 'i64', 'bool', ...")
      .def_prop_ro(
          "shape", [](const ModelTensor& t) { return nb::tuple(nb::cast(t.shape)); },
          "the extents; the largest, where they vary")
      .def_ro(
          "dims", &ModelTensor::dims,
          "what each extent varies with from run to run, such as 'batch' or 'past + seq', '' for "
          "a fixed one; empty if none varies with the inputs' shapes")
      .def_prop_ro(
          "least", [](const ModelTensor& t) { return nb::tuple(nb::cast(t.least)); },
          "the smallest extents of an input that varies")
      .def("__repr__", [](const ModelTensor& t) {
        return t.name + ": " + std::string(dtype_name(t.dtype)) + to_string(t.shape);
      });
  nb::class_<StepTime>(module, "StepTime", "The time of one kernel in a run, or of a phase of it.")
      .def_ro("name", &StepTime::name, "name of the task's first node")
      .def_ro("kernel_class", &StepTime::kernel_class, "such as 'conv2d+bias+relu'")
      .def_ro("kernel", &StepTime::kernel, "steps with equal numbers run the same code")
      .def_ro("seconds", &StepTime::seconds, "of the run that was recorded last")
      .def_ro("flops", &StepTime::flops, "FLOPs, as the operators are written")
      .def_ro("least_flops", &StepTime::least_flops,
              "FLOPs of the algorithm that needs the fewest; 0 in older libraries")
      .def_ro("bytes", &StepTime::bytes, "bytes read and written, each once; 0 in older libraries");
  nb::class_<LoadedModel>(module, "LoadedModel", "A library in this process, with its own threads.")
      .def_prop_ro("inputs", [](const LoadedModel& m) { return m.inputs(); })
      .def_prop_ro("outputs", [](const LoadedModel& m) { return m.outputs(); })
      .def("run", &run, nb::arg("inputs"), nb::arg("out") = nb::none())
      .def("__call__", &call)
      .def("profile", [](LoadedModel& m, bool enable) { LoadedModel::Use(m)->profile(enable); })
      .def("step_times", &step_times)
      .def_prop_ro("device", [](LoadedModel& m) { return LoadedModel::Use(m)->device(); });
  module.def("load", &load_model, nb::arg("path"), nb::arg("threads") = 0,
             nb::arg("time_limit") = 0.0);
}

}  // namespace hone::python
