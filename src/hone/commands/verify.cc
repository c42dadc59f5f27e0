#include "hone/commands/verify.h"

#include <algorithm>

#include "hone/commands/verify_tasks.h"
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

Result<std::vector<Tensor>> inputs_of(const ModelTasks& model, const VerifyOptions& options) {
  std::vector<ModelTensor> wanted;
  for (const graph::TensorInfo& info : model.tasks.inputs)
    wanted.push_back({info.name, info.dtype, info.shape});
  if (!options.make_inputs) return arrange_inputs(wanted, {}, options.compile.advanced.seed);
  HONE_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, options.make_inputs(wanted));
  if (inputs.size() != wanted.size())
    return invalid("found {} input tensors, expected {}", inputs.size(), wanted.size());
  return inputs;
}

}  // namespace

Result<VerifyReport> verify(graph::Graph imported, const VerifyOptions& options) {
  const CompileOptions& compile = options.compile;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(compile));
  HONE_ASSIGN_OR_RETURN(ModelTasks model, make_tasks(*session, imported, compile));
  HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_of(model, options));
  HONE_ASSIGN_OR_RETURN(ScheduleSources sources, load_sources(model, compile));
  HONE_ASSIGN_OR_RETURN(std::vector<schedule::Steps> schedules,
                        choose_schedules(model, sources, compile));
  HONE_ASSIGN_OR_RETURN(const Assembly assembly, assemble_model(model, schedules, compile));
  const double tolerance =
      options.tolerance < 0 ? usual_tolerance(imported, session->accuracy()) : options.tolerance;
  if (options.reference == nullptr)
    return verify_tasks(imported, model, assembly, inputs, tolerance, compile.interrupted);
  return verify_tasks(*options.reference, model, assembly, inputs, tolerance);
}

Result<VerifyReport> verify(const std::string& model, const VerifyOptions& options) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, import_model(model, options.compile));
  return verify(std::move(graph), options);
}

}  // namespace hone
