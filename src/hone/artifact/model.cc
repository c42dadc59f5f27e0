#include "hone/model.h"

#include <cstring>

#include "hone/artifact/loaded_model.h"
#include "hone/base/allocation.h"
#include "hone/base/status.h"

namespace hone {
namespace {

Status check_input(const ModelTensor& expected, const Tensor& found) {
  if (found.dtype() != expected.dtype)
    return invalid("input {} has type {}, expected {}", expected.name, dtype_name(found.dtype()),
                   dtype_name(expected.dtype));
  if (expected.dims.empty() && found.shape() != expected.shape)
    return invalid("input {} has shape {}, expected {}", expected.name, to_string(found.shape()),
                   to_string(expected.shape));
  return ok_status();
}

Status check_input_number(const ModelBody& body, int input) {
  if (input >= 0 && input < std::ssize(body.inputs())) return ok_status();
  return invalid("there is no input {}, but {}", input, body.inputs().size());
}

Status check_output_number(const ModelBody& body, int output) {
  if (output >= 0 && output < std::ssize(body.outputs())) return ok_status();
  return invalid("there is no output {}, but {}", output, body.outputs().size());
}

Status set_shape(ModelBody& body, int input, const Shape& shape) {
  const ModelTensor& expected = body.inputs()[static_cast<size_t>(input)];
  if (expected.dims.empty() && shape == expected.shape) return ok_status();
  return body.set_input_shape(input, shape);
}

Status check_counts(const ModelBody& body, size_t inputs, size_t outputs) {
  if (inputs == body.inputs().size() && outputs == body.outputs().size()) return ok_status();
  return invalid("found {} inputs and {} outputs, expected {} and {}", inputs, outputs,
                 body.inputs().size(), body.outputs().size());
}

Result<std::vector<Tensor>> run_on_tensors(ModelBody& body, std::span<const Tensor> inputs,
                                           int most, std::vector<RunTime>* times) {
  if (inputs.size() != body.inputs().size())
    return invalid("found {} inputs, expected {}", inputs.size(), body.inputs().size());
  std::vector<const void*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(check_input(body.inputs()[i], inputs[i]));
    if (!body.inputs()[i].dims.empty())
      HONE_RETURN_IF_ERROR(set_shape(body, static_cast<int>(i), inputs[i].shape()));
    in.push_back(inputs[i].data());
  }
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    const ModelTensor& output = body.outputs()[i];
    Shape shape = output.shape;
    if (!output.dims.empty()) {
      HONE_ASSIGN_OR_RETURN(shape, body.output_shape(static_cast<int>(i)));
    }
    const AllocatesFor purpose(fmt::format("output '{}'", output.name));
    results.emplace_back(output.dtype, shape);
    out.push_back(results.back().data());
  }
  HONE_RETURN_IF_ERROR(body.run(in, out, most, times));
  for (size_t i = 0; i < results.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const Shape actual, body.output_shape(static_cast<int>(i)));
    if (actual == results[i].shape()) continue;
    // The elements are dense from the start of the array.
    Tensor smaller(results[i].dtype(), actual);
    if (smaller.bytes() > results[i].bytes())
      return error(Code::kInternal, "output {} has shape {}, which exceeds {}",
                   body.outputs()[i].name, to_string(actual), to_string(results[i].shape()));
    std::memcpy(smaller.data(), results[i].data(), static_cast<size_t>(smaller.bytes()));
    results[i] = smaller;
  }
  return results;
}

}  // namespace

Model::Model(std::unique_ptr<ModelBody> body) : body_(std::move(body)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::load(const std::string& path, int num_threads) {
  return load(path, LoadOptions{.num_threads = num_threads});
}

Result<Model> Model::load(const std::string& path, const LoadOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<ModelBody> body, artifact::load_model(path, options, path));
  return Model(std::move(body));
}

Result<Model> load(const std::string& library, int num_threads) {
  return Model::load(library, num_threads);
}

const std::vector<ModelTensor>& Model::inputs() const { return body_->inputs(); }
const std::vector<ModelTensor>& Model::outputs() const { return body_->outputs(); }

Status Model::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  HONE_RETURN_IF_ERROR(check_counts(*body_, inputs.size(), outputs.size()));
  return body_->run(inputs, outputs, 1, nullptr);
}

Status Model::run(std::span<const void* const> inputs, std::span<void* const> outputs, int most,
                  std::vector<RunTime>& times) {
  HONE_RETURN_IF_ERROR(check_counts(*body_, inputs.size(), outputs.size()));
  return body_->run(inputs, outputs, most, &times);
}

Result<std::vector<Tensor>> Model::run(std::span<const Tensor> inputs) {
  return run_on_tensors(*body_, inputs, 1, nullptr);
}

Result<std::vector<Tensor>> Model::run(std::span<const Tensor> inputs, int most,
                                       std::vector<RunTime>& times) {
  return run_on_tensors(*body_, inputs, most, &times);
}

Status Model::set_input_shape(int input, const Shape& shape) {
  HONE_RETURN_IF_ERROR(check_input_number(*body_, input));
  return set_shape(*body_, input, shape);
}

Result<Shape> Model::input_shape(int input) const {
  HONE_RETURN_IF_ERROR(check_input_number(*body_, input));
  return body_->input_shape(input);
}

Result<Shape> Model::output_shape(int output) const {
  HONE_RETURN_IF_ERROR(check_output_number(*body_, output));
  return body_->output_shape(output);
}

std::string Model::device() const { return body_->device(); }
int64_t Model::device_bytes() const { return body_->device_bytes(); }
void Model::profile(bool enable) { body_->profile(enable); }
Status Model::trace(bool enable) { return body_->trace(enable); }
std::vector<ThreadWork> Model::thread_work() const { return body_->thread_work(); }
std::vector<StepTime> Model::step_times() const { return body_->step_times(); }

}  // namespace hone
