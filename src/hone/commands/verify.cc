#include "hone/commands/verify.h"

#include <algorithm>

#include "hone/base/hash.h"
#include "hone/commands/check/sized_values.h"
#include "hone/commands/verify_tasks.h"
#include "hone/graph/size_values.h"
#include "hone/open_model.h"
#include "hone/session/schedule_sources.h"
#include "hone/session/write_model.h"
#include "hone/tensor/small_types.h"

namespace hone {
namespace {

using graph::ValueId;

// Returns the tolerance of the accuracy, and of the types that the model computes with; what was
// rounded to 8 bits or fewer may differ by one step.
double usual_tolerance(const graph::Graph& graph, trial::Accuracy accuracy) {
  double tolerance = accuracy == trial::Accuracy::kFast ? 1e-2 : 1e-3;
  for (const graph::Node& node : graph.nodes) {
    for (const ValueId out : node.outputs) {
      if (out == graph::kNoValue) continue;
      const DType dtype = graph.value(out).dtype;
      if (dtype == DType::kF16) tolerance = std::max(tolerance, 1e-2);
      if (dtype == DType::kI8 || dtype == DType::kU8) tolerance = std::max(tolerance, 2e-2);
      if (dtype == DType::kBF16) tolerance = std::max(tolerance, 6e-2);
      if (is_small(dtype)) tolerance = std::max(tolerance, small_step(dtype));
    }
  }
  return tolerance;
}

constexpr int kRandomSizes = 3;  // beside the largest and the smallest

// The inputs of one run: as a library takes them, and as a naive run of the graph does.
struct Inputs {
  std::vector<Tensor> dense, whole;
};

std::vector<int64_t> sizes_of(const ModelTasks& model, const std::vector<int64_t>& symbols) {
  return graph::sizes_of(model.tasks.varying, symbols);
}

const graph::ShapeParts& parts_of(const ModelTasks& model, size_t input) {
  static const graph::ShapeParts none;
  const auto& inputs = model.tasks.varying.inputs;
  return input < inputs.size() ? inputs[input] : none;
}

// The inputs that the model takes at these sizes, without values.
std::vector<ModelTensor> tensors_at(const ModelTasks& model, const std::vector<int64_t>& symbols) {
  const std::vector<int64_t> sizes = sizes_of(model, symbols);
  std::vector<ModelTensor> tensors;
  for (size_t i = 0; i < model.tasks.inputs.size(); ++i) {
    const graph::TensorInfo& info = model.tasks.inputs[i];
    tensors.push_back(
        {info.name, info.dtype, graph::shape_of(parts_of(model, i), info.shape, sizes)});
  }
  return tensors;
}

Result<std::vector<Tensor>> dense_inputs(const std::vector<ModelTensor>& wanted,
                                         const VerifyOptions& options) {
  if (!options.make_inputs) return arrange_inputs(wanted, {}, options.compile.advanced.seed);
  HONE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, options.make_inputs(wanted));
  if (inputs.size() != wanted.size())
    return invalid("found {} input tensors, expected {}", inputs.size(), wanted.size());
  return inputs;
}

Result<Inputs> inputs_at(const ModelTasks& model, const VerifyOptions& options,
                         const std::vector<int64_t>& symbols) {
  Inputs inputs;
  HONE_ASSIGN_OR_RETURN(inputs.dense, dense_inputs(tensors_at(model, symbols), options));
  inputs.whole = inputs.dense;
  if (!model.tasks.varying.any()) return inputs;
  const std::vector<int64_t> sizes = sizes_of(model, symbols);
  for (size_t i = 0; i < inputs.whole.size(); ++i) {
    const Shape& largest = model.tasks.inputs[i].shape;
    inputs.whole[i] = in_largest(inputs.dense[i], largest, parts_of(model, i), sizes);
  }
  inputs.whole.push_back(sizes_tensor(model.tasks.varying, symbols));
  return inputs;
}

// The sizes beside the largest.
std::vector<std::vector<int64_t>> other_sizes(const graph::Varying& varying, uint64_t seed) {
  std::vector<std::vector<int64_t>> all;
  if (!varying.any()) return all;
  all.push_back(graph::smallest_symbols(varying));
  for (uint64_t i = 0; i < kRandomSizes; ++i) {
    std::vector<int64_t> drawn = random_symbols(varying, hash_combine(seed, i));
    if (std::find(all.begin(), all.end(), drawn) == all.end()) all.push_back(std::move(drawn));
  }
  return all;
}

// Adds what was found at one of several sizes.
void add(VerifyReport& report, VerifyReport found, const std::string& size) {
  report.sizes.push_back(size);
  report.compared += found.compared;
  if (found.worst_error >= report.worst_error) {
    report.worst_error = found.worst_error;
    report.worst_value = found.worst_value;
  }
  for (Divergence& divergence : found.divergences) {
    divergence.size = size;
    report.divergences.push_back(std::move(divergence));
  }
}

// Compares at one size. `at` may be empty.
Result<VerifyReport> verify_at(const graph::Graph& imported, const ModelTasks& model,
                               const Assembly& assembly, const VerifyOptions& options,
                               const std::vector<int64_t>& symbols, double tolerance,
                               const ImportAt& at) {
  HONE_ASSIGN_OR_RETURN(const Inputs inputs, inputs_at(model, options, symbols));
  const std::atomic<bool>* interrupted = options.compile.interrupted;
  if (!at) return verify_tasks(imported, model, assembly, inputs.whole, tolerance, interrupted);
  std::map<std::string, Shape> shapes;
  for (const ModelTensor& tensor : tensors_at(model, symbols)) shapes[tensor.name] = tensor.shape;
  HONE_ASSIGN_OR_RETURN(const graph::Graph reference, at(shapes));
  return verify_tasks(imported, reference, model, assembly, inputs.whole, inputs.dense, tolerance,
                      interrupted);
}

}  // namespace

Result<VerifyReport> verify(graph::Graph imported, const VerifyOptions& options,
                            const ImportAt& at) {
  const CompileOptions& compile = options.compile;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model, make_tasks(*session, imported, compile));
  const graph::Varying& varying = model.tasks.varying;
  const std::vector<int64_t> largest = graph::largest_symbols(varying);
  HONE_ASSIGN_OR_RETURN(const Inputs inputs, inputs_at(model, options, largest));
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model, compile));
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> schedules,
                        choose_schedules(model, sources, compile));
  HONE_ASSIGN_OR_RETURN(const Assembly assembly, assemble_model(model, schedules, compile));
  const double tolerance =
      options.tolerance < 0 ? usual_tolerance(imported, session->accuracy()) : options.tolerance;
  if (options.reference != nullptr)
    return verify_tasks(*options.reference, model, assembly, inputs.whole, tolerance);
  HONE_ASSIGN_OR_RETURN(VerifyReport report, verify_tasks(imported, model, assembly, inputs.whole,
                                                          tolerance, compile.interrupted));
  if (!varying.any()) return report;
  report.sizes.push_back(symbols_text(varying, largest));
  for (Divergence& divergence : report.divergences) divergence.size = report.sizes[0];
  for (const std::vector<int64_t>& symbols : other_sizes(varying, compile.advanced.seed)) {
    const std::string size = symbols_text(varying, symbols);
    Result<VerifyReport> found =
        verify_at(imported, model, assembly, options, symbols, tolerance, at);
    if (!found.ok()) return error(found.status().code(), "{}: {}", size, found.status().message());
    add(report, std::move(*found), size);
  }
  return report;
}

Result<VerifyReport> verify(const std::string& model, const VerifyOptions& options) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile));
  return verify(std::move(graph), options, [&](const std::map<std::string, Shape>& shapes) {
    CompileOptions one_size = options.compile;
    one_size.model = {.shapes = shapes};
    one_size.model.bind = options.compile.model.bind;
    one_size.model.available = options.compile.model.available;
    one_size.model.linked_data = options.compile.model.linked_data;
    one_size.model.max_turns = options.compile.model.max_turns;
    return import_model(model, one_size);
  });
}

}  // namespace hone
