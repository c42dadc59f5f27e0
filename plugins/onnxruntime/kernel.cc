#include "kernel.h"

#include <algorithm>
#include <cstring>

namespace hone::ort {
namespace {

// Returns the place of a name in a list, or its length.
size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

size_t bytes_of(const ModelTensor& tensor) {
  return static_cast<size_t>(num_elements(tensor.shape) * dtype_bytes(tensor.dtype));
}

// Returns whether ONNX Runtime knows all extents of a value before a run.
bool is_fixed(const Graph& graph, const std::string& name) {
  const auto found = graph.values.find(name);
  return found != graph.values.end() && found->second.has_shape &&
         std::all_of(found->second.dims.begin(), found->second.dims.end(),
                     [](const GraphDim& dim) { return dim.extent >= 0; });
}

}  // namespace

Kernel::Kernel(const OrtApi& api, std::string library, int threads)
    : api_(api), library_(std::move(library)), threads_(threads) {
  create_state = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) {
    *state = self;
    return static_cast<OrtStatus*>(nullptr);
  };
  compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
    Kernel& kernel = *static_cast<Kernel*>(self);
    return guarded(kernel.api_, [&] { return kernel.run(context); });
  };
  release_state = [](OrtNodeComputeInfo*, void*) {};
}

Result<std::unique_ptr<Kernel>> Kernel::create(const OrtApi& api, const std::string& library,
                                               int threads, const GraphNode& fused,
                                               const Graph& graph) {
  std::unique_ptr<Kernel> kernel(new Kernel(api, library, threads));
  HONE_RETURN_IF_ERROR(kernel->connect(fused, graph));
  return kernel;
}

// Loads the first model, and finds the place of each of its inputs and outputs.
Status Kernel::connect(const GraphNode& fused, const Graph& graph) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Instance> instance, take());
  const auto find = [&](const std::vector<std::string>& names, const ModelTensor& tensor,
                        const char* kind) -> Result<Port> {
    const size_t place = place_of(names, tensor.name);
    if (place == names.size())
      return invalid("{}: the node '{}' has no {} '{}'", library_, fused.name, kind, tensor.name);
    return Port{.place = place, .bytes = bytes_of(tensor)};
  };
  for (const ModelTensor& input : instance->model.inputs()) {
    HONE_ASSIGN_OR_RETURN(const Port port, find(fused.inputs, input, "input"));
    inputs_.push_back(port);
  }
  for (const ModelTensor& output : instance->model.outputs()) {
    HONE_ASSIGN_OR_RETURN(Port port, find(fused.outputs, output, "output"));
    port.late = output.dims.empty() && !is_fixed(graph, output.name);
    outputs_.push_back(port);
  }
  for (const std::string& name : fused.outputs) {
    const auto& outputs = instance->model.outputs();
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const ModelTensor& output) { return output.name == name; }))
      return invalid("{} has no output '{}' of the node '{}'", library_, name, fused.name);
  }
  idle_.push_back(std::move(instance));
  return ok_status();
}

Result<std::unique_ptr<Kernel::Instance>> Kernel::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Instance> instance = std::move(idle_.back());
      idle_.pop_back();
      return instance;
    }
  }
  HONE_ASSIGN_OR_RETURN(Model model, Model::load(library_, threads_));
  auto instance = std::make_unique<Instance>(std::move(model));
  instance->inputs.resize(instance->model.inputs().size());
  instance->outputs.resize(instance->model.outputs().size());
  instance->own.resize(instance->outputs.size());
  return instance;
}

Status Kernel::run(OrtKernelContext* context) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Instance> instance, take());
  Status status = set_inputs(*instance, context);
  if (status.ok()) status = set_outputs(*instance, context);
  if (status.ok()) status = instance->model.run(instance->inputs, instance->outputs);
  if (status.ok()) status = deliver_late(*instance, context);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(instance));
  return status;
}

Status Kernel::set_inputs(Instance& instance, const OrtKernelContext* context) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ModelTensor& expected = instance.model.inputs()[i];
    const OrtValue* value = nullptr;
    HONE_ORT_RETURN_IF_ERROR(api_, api_.kernel_input(context, inputs_[i].place, &value));
    if (value == nullptr) return invalid("the input '{}' has no value", expected.name);
    if (expected.dims.empty()) {
      // ONNX Runtime has compared what it was given with the model; this keeps reads inside.
      size_t bytes = 0;
      HONE_ORT_RETURN_IF_ERROR(api_, api_.tensor_bytes(value, &bytes));
      if (bytes != inputs_[i].bytes)
        return invalid("the input '{}' has {} bytes, expected {}, of the shape {}", expected.name,
                       bytes, inputs_[i].bytes, to_string(expected.shape));
    } else {
      HONE_RETURN_IF_ERROR(read_shape(api_, value, instance.shape).status());
      const Status set = instance.model.set_input_shape(static_cast<int>(i), instance.shape);
      if (!set.ok())
        return {set.code(), set.message() + " (the provider's option shape gives the range)"};
    }
    HONE_ORT_RETURN_IF_ERROR(api_, api_.tensor_data(value, &instance.inputs[i]));
  }
  return ok_status();
}

Result<void*> Kernel::output_array(OrtKernelContext* context, size_t i, const Shape& shape) {
  OrtValue* value = nullptr;
  HONE_ORT_RETURN_IF_ERROR(
      api_, api_.kernel_output(context, outputs_[i].place, shape.data(), shape.size(), &value));
  void* data = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api_, api_.mutable_data(value, &data));
  return data;
}

Status Kernel::set_outputs(Instance& instance, OrtKernelContext* context) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ModelTensor& output = instance.model.outputs()[i];
    if (outputs_[i].late) {
      if (instance.own[i].size() == 0) instance.own[i] = Tensor(output.dtype, output.shape);
      instance.outputs[i] = instance.own[i].data();
      continue;
    }
    if (output.dims.empty()) {
      HONE_ASSIGN_OR_RETURN(instance.outputs[i], output_array(context, i, output.shape));
    } else {
      HONE_ASSIGN_OR_RETURN(const Shape shape, instance.model.output_shape(static_cast<int>(i)));
      HONE_ASSIGN_OR_RETURN(instance.outputs[i], output_array(context, i, shape));
    }
  }
  return ok_status();
}

// Copies the outputs whose shape is known only now.
Status Kernel::deliver_late(Instance& instance, OrtKernelContext* context) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].late) continue;
    const ModelTensor& output = instance.model.outputs()[i];
    HONE_ASSIGN_OR_RETURN(const Shape shape, instance.model.output_shape(static_cast<int>(i)));
    HONE_ASSIGN_OR_RETURN(void* array, output_array(context, i, shape));
    const auto bytes = static_cast<size_t>(num_elements(shape) * dtype_bytes(output.dtype));
    if (bytes > outputs_[i].bytes)
      return error(Code::kInternal, "the output '{}' has the shape {}, which exceeds {}",
                   output.name, to_string(shape), to_string(output.shape));
    if (bytes > 0) std::memcpy(array, instance.own[i].data(), bytes);
  }
  return ok_status();
}

}  // namespace hone::ort
