#include "hone/commands/check/locate_fault.h"

#include <algorithm>
#include <map>

#include "hone/commands/check/output_difference.h"
#include "hone/commands/check/sized_values.h"
#include "hone/machine/local.h"

namespace hone {
namespace {

using graph::ValueId;

constexpr int64_t kSampled = 1 << 15;  // elements of a value that are compared

// The graph after a pass.
struct Snapshot {
  std::string pass;
  graph::Graph graph;
};

// After each pass that may be left out. What comes later decides where values lie, not what they
// are.
Result<std::vector<Snapshot>> snapshots_of(graph::Graph graph, const CompileOptions& options,
                                           const target::Target& target) {
  const std::vector<std::string> optional = graph::optional_pass_names();
  std::vector<Snapshot> snapshots;
  graph::PassOptions passes = pass_options(options, target);
  passes.after_pass = [&, hook = passes.after_pass](const std::string& pass, graph::Graph& now) {
    if (hook) hook(pass, now);
    if (std::count(optional.begin(), optional.end(), pass) > 0) snapshots.push_back({pass, now});
  };
  HONE_RETURN_IF_ERROR(graph::optimize(graph, passes));
  return snapshots;
}

NaiveOptions naive_options(const CompileOptions& options) {
  return {.threads = machine::local().target().cpu().cores,
          .max_plain_flops = kPlainFlops,
          .interrupted = options.interrupted};
}

// True for a graph that cannot be run as it is: no pass is blamed for that.
Result<bool> is_right(ModelCheck& check, const WrongOutput& wrong, const Snapshot& snapshot,
                      const CompileOptions& options) {
  const auto run = [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    HONE_ASSIGN_OR_RETURN(NaiveModel model,
                          NaiveModel::create(snapshot.graph, naive_options(options)));
    HONE_RETURN_IF_ERROR(model.compile());
    return naive_outputs(model, snapshot.graph, {inputs.begin(), inputs.end()});
  };
  const Result<bool> right = check.is_right(run, rounding_of(check.graph(), {}), wrong.draw);
  if (right.ok() || right.status().code() == Code::kCancelled) return right;
  return true;
}

// As many elements as are compared, evenly spread.
Tensor sample(const Tensor& tensor) {
  const int64_t step = (tensor.size() + kSampled - 1) / kSampled;
  if (step <= 1) return tensor;
  Tensor some(tensor.dtype(), {tensor.size() / step});
  for (int64_t i = 0; i < some.size(); ++i) some.set(i, tensor.at(i * step));
  return some;
}

// The first node whose result has another value in the model as imported.
Result<std::string> first_wrong_node(const ModelCheck& check, const WrongOutput& wrong,
                                     const Snapshot& snapshot, const CompileOptions& options) {
  const std::vector<Tensor>& inputs = check.inputs(wrong.draw);
  const graph::Graph& imported = check.graph();
  // If the graph varies, a value has elements beyond those of the run, which mean nothing.
  const auto of_run = [&](ValueId id, const Tensor& whole) {
    const graph::Value& value = imported.value(id);
    if (!imported.varying.any() || value.forms.empty() || whole.shape() != value.shape)
      return sample(whole);
    return sample(part_of_run(whole, value.forms, inputs.back().as<int64_t>()));
  };
  struct Expected {
    Tensor tensor;
    ValueId id;  // of the model as imported
  };
  std::map<ValueId, Expected> expected;
  const auto keep = [&](ValueId id, const NaiveValue& value) {
    expected.emplace(id, Expected{of_run(id, value.tensor), id});
  };
  HONE_RETURN_IF_ERROR(naive_values(check.naive(), imported, inputs, keep));
  for (size_t i = 0; i < snapshot.graph.outputs.size(); ++i) {
    const auto output = expected.find(imported.outputs[i]);
    if (output != expected.end()) expected.emplace(snapshot.graph.outputs[i], output->second);
  }
  HONE_ASSIGN_OR_RETURN(NaiveModel model,
                        NaiveModel::create(snapshot.graph, naive_options(options)));
  HONE_RETURN_IF_ERROR(model.compile());
  const double tolerance = rounding_of(imported, {}).tolerance;
  std::string node;
  const auto look = [&](ValueId id, const NaiveValue& value) {
    const auto known = expected.find(id);
    if (!node.empty() || value.node == nullptr || known == expected.end()) return;
    const auto& [tensor, same] = known->second;
    if (difference(of_run(same, value.tensor), tensor, tolerance).share > 0)
      node = value.node->name;
  };
  HONE_RETURN_IF_ERROR(naive_values(model, snapshot.graph, inputs, look));
  return node;
}

}  // namespace

Result<std::optional<WrongPass>> find_wrong_pass(ModelCheck& check, const WrongOutput& wrong,
                                                 const CompileOptions& options,
                                                 const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots,
                        snapshots_of(check.graph(), options, target));
  if (snapshots.empty()) return std::optional<WrongPass>();
  // What is wrong after one pass stays wrong after the later ones, so the search is binary.
  HONE_ASSIGN_OR_RETURN(const bool right, is_right(check, wrong, snapshots.back(), options));
  if (right) return std::optional<WrongPass>();
  size_t first = 0, last = snapshots.size() - 1;  // `last` is wrong, what is before `first` is not
  while (first < last) {
    const size_t middle = (first + last) / 2;
    HONE_ASSIGN_OR_RETURN(const bool fine, is_right(check, wrong, snapshots[middle], options));
    if (fine)
      first = middle + 1;
    else
      last = middle;
  }
  WrongPass found{snapshots[last].pass, ""};
  const Result<std::string> node = first_wrong_node(check, wrong, snapshots[last], options);
  if (node.status().code() == Code::kCancelled) return node.status();
  if (node.ok()) found.node = *node;
  return std::optional(found);
}

}  // namespace hone
