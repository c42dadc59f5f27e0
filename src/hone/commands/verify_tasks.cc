#include "hone/commands/verify_tasks.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "hone/commands/check/compare.h"
#include "hone/commands/check/naive_values.h"
#include "hone/commands/check/sized_values.h"
#include "hone/graph/op.h"
#include "hone/graph/stored_value.h"
#include "hone/machine/local.h"
#include "hone/session/model_tasks.h"
#include "hone/session/step_run.h"

namespace hone {
namespace {

using graph::kNoValue;
using graph::ValueId;

// What a value must be; of a value whose shape depends on data, the part that has a meaning.
struct Expected {
  Tensor tensor;
  bool part = false;
  std::string node, type;  // what makes it in the model as imported
  bool sized = false;      // it is of the model as imported for one size
};
// By values of the optimized graph: passes keep the ids of what was imported.
using Reference = std::map<ValueId, Expected>;

// The name that the model gives to a value.
std::string name_of(const graph::Graph& graph, ValueId id) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (graph.outputs[i] == id) return graph.output_names[i];
  }
  return graph.value(id).name;
}

// Every result of the model as imported, as far as it is among the `wanted` ones of the optimized
// graph.
Result<Reference> naive_reference(const graph::Graph& graph, const graph::Graph& optimized,
                                  const std::vector<Tensor>& inputs,
                                  const std::set<ValueId>& wanted, const NaiveOptions& options) {
  HONE_ASSIGN_OR_RETURN(NaiveModel model, NaiveModel::create(graph, options));
  HONE_RETURN_IF_ERROR(model.compile());
  Reference reference;
  // If the graph varies, a value has elements beyond those of the run, which mean nothing.
  const auto cut_to_run = [&](ValueId id, const Tensor& whole) {
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (graph.outputs[i] == id) return output_of_run(graph, i, whole, inputs);
    }
    return part_of_run(whole, graph.value(id).forms, inputs.back().as<int64_t>());
  };
  const auto store = [&](ValueId id, const NaiveValue& value) {
    Expected expected{.tensor = value.tensor, .part = value.part};
    expected.sized = graph.varying.any();
    if (expected.sized && !value.part) expected.tensor = cut_to_run(id, value.tensor);
    if (value.node != nullptr) expected.node = value.node->name, expected.type = value.node->type;
    if (wanted.contains(id)) reference.emplace(id, expected);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (graph.outputs[i] == id) reference.emplace(optimized.outputs[i], expected);
    }
  };
  HONE_RETURN_IF_ERROR(naive_values(model, graph, inputs, store));
  return reference;
}

class Checker {
 public:
  Checker(const ModelTasks& model, const PartialBuffers& partial, const Reference& reference,
          VerifyReport& report)
      : model_(model),
        graph_(model.graph),
        partial_(partial),
        reference_(reference),
        report_(report) {
    const graph::Varying& varying = graph_.varying;
    for (size_t i = 0; i < varying.outputs.size(); ++i) {
      if (!varying.outputs[i].empty()) outputs_[graph_.outputs[i]] = &varying.outputs[i];
    }
  }

  // What passes computed at compile time.
  void check_constants() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const graph::Value& value = graph_.value(id);
      if (value.constant) check(id, *value.constant, nullptr, nullptr);
    }
  }

  Status run(StepRun& steps, std::span<const Tensor> inputs) {
    if (graph_.varying.any()) sizes_ = inputs.back();
    done_.assign(graph_.values.size(), false);
    computed_.clear();
    unknown_.clear();
    for (const ValueId id : graph_.inputs) done_[static_cast<size_t>(id)] = true;
    views_.clear();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op->kind == graph::Kind::kView) views_.push_back(static_cast<int>(i));
    }
    return steps.run(inputs, [&](int call) { return check_call(steps, call); });
  }

 private:
  Status check_call(const StepRun& steps, int index) {
    const graph::TaskCall& call = model_.tasks.calls[static_cast<size_t>(index)];
    if (call.loop >= 0) return ok_status();  // its value is one of a turn
    const graph::Node& last = graph_.nodes[static_cast<size_t>(call.nodes.back())];
    note_computed(steps, index);
    bool checked = false;
    for (const ValueId out : last.outputs) {
      if (out != kNoValue) checked |= check_stored(steps, out, last, &call);
    }
    if (!checked) ++report_.unknown;
    // Views of what is complete now.
    std::erase_if(views_, [&](int view) {
      const graph::Node& node = graph_.nodes[static_cast<size_t>(view)];
      const bool ready = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
        return in == kNoValue || graph_.value(in).constant || done_[static_cast<size_t>(in)];
      });
      if (ready) check_stored(steps, node.outputs[0], node, nullptr);
      return ready;
    });
    return ok_status();
  }

  bool check_stored(const StepRun& steps, ValueId id, const graph::Node& node,
                    const graph::TaskCall* call) {
    done_[static_cast<size_t>(id)] = true;
    const graph::Value& value = graph_.value(id);
    const int buffer = value.storage.buffer;
    if (buffer < 0) return false;
    const void* memory = memory_of(steps, buffer);
    if (memory == nullptr) return false;
    if (unknown_.contains(buffer)) return false;
    return check(id, graph::stored_value(value, memory), &node, call, computed(value));
  }

  const void* memory_of(const StepRun& steps, int buffer) const {
    return steps.memory(graph_.buffers[static_cast<size_t>(buffer)], buffer);
  }

  // Notes which elements a call that has just ended has computed, as the sizes that data decide are
  // in memory now.
  void note_computed(const StepRun& steps, int call) {
    const auto limits = partial_.find(call);
    if (limits == partial_.end()) return;
    for (const PartialLimit& one : limits->second) {
      const void* memory = memory_of(steps, one.size.buffer);
      if (memory == nullptr || !one.limit) {
        unknown_.insert(one.buffer);
        continue;
      }
      const auto [it, fresh] = computed_.try_emplace(one.buffer);
      if (fresh) {
        const graph::Buffer& buffer = graph_.buffers[static_cast<size_t>(one.buffer)];
        it->second = Tensor(DType::kBool, {num_elements(buffer.shape)});
        std::memset(it->second.data(), 1, static_cast<size_t>(it->second.bytes()));
      }
      leave_out_beyond(*one.limit, static_cast<const int64_t*>(memory)[one.size.element],
                       it->second);
    }
  }

  // Returns which elements of a value the run has computed; nothing if it has all.
  std::optional<Tensor> computed(const graph::Value& value) const {
    const auto flags = computed_.find(value.storage.buffer);
    if (flags == computed_.end()) return std::nullopt;
    graph::Value like = value;
    like.dtype = DType::kBool;
    return graph::stored_value(like, flags->second.data());
  }

  bool check(ValueId id, const Tensor& found, const graph::Node* node, const graph::TaskCall* call,
             const std::optional<Tensor>& computed = {}) {
    const auto entry = reference_.find(id);
    if (entry == reference_.end()) return false;
    const Expected& expected = entry->second;
    const Shape& part = expected.tensor.shape();
    // A gather computes only places that the run has; the results that are made of them are
    // compared.
    if (node != nullptr && node->run_places && graph_.value(id).forms.empty()) return false;
    if (const graph::ShapeParts* parts = parts_of(id)) {
      Tensor own = part_of_run(found, *parts, sizes_.as<int64_t>());
      if (own.shape() == part || outputs_.contains(id)) {
        if (computed)
          take_others(part_of_run(*computed, *parts, sizes_.as<int64_t>()), expected.tensor, own);
        compare_one(name_of(graph_, id), own, expected, node, call);
        return true;
      }
    }
    if (expected.sized && found.shape() != part) return false;
    const bool varies = expected.part || is_dense(node) || graph_.value(id).extents != kNoValue;
    const bool smaller = varies && fits(part, found.shape());
    const auto shown = [&](const Tensor& whole) {
      return smaller ? cut(whole, part, is_dense(node)) : whole;
    };
    Tensor own = shown(found);
    if (computed) take_others(shown(*computed), expected.tensor, own);
    compare_one(name_of(graph_, id), own, expected, node, call);
    return true;
  }

  // Returns the parts of a value's dimensions, or null if none varies.
  const graph::ShapeParts* parts_of(ValueId id) const {
    if (sizes_.dtype() != DType::kI64) return nullptr;  // before a run
    if (const auto output = outputs_.find(id); output != outputs_.end()) return output->second;
    const graph::ShapeParts& forms = graph_.value(id).forms;
    return forms.empty() ? nullptr : &forms;
  }

  void compare_one(const std::string& name, const Tensor& found, const Expected& expected,
                   const graph::Node* node, const graph::TaskCall* call) {
    ++report_.compared;
    double error = 0;
    std::optional<Divergence> divergence =
        compare(found, expected.tensor, report_.tolerance, error);
    if (!divergence) {
      if (error >= report_.worst_error) report_.worst_error = error, report_.worst_value = name;
      return;
    }
    divergence->value = name;
    divergence->node = node != nullptr ? node->name : expected.node;
    divergence->type = node != nullptr ? node->type : expected.type;
    if (call != nullptr) {
      divergence->kernel_class = compute::kernel_class(call->dag);
      divergence->group = call->group;
      for (const int i : call->nodes)
        divergence->fused.push_back(graph_.nodes[static_cast<size_t>(i)].name);
    }
    report_.divergences.push_back(std::move(*divergence));
  }

  // Sets the elements that are not `computed`, which are undefined, to those of `expected`.
  static void take_others(const Tensor& computed, const Tensor& expected, Tensor& found) {
    if (found.shape() != expected.shape() || found.dtype() != expected.dtype()) return;
    const auto bytes = static_cast<size_t>(dtype_bytes(found.dtype()));
    for (int64_t i = 0; i < found.size(); ++i) {
      const size_t at = static_cast<size_t>(i) * bytes;
      if (computed.at(i) == 0)
        std::memcpy(static_cast<char*>(found.data()) + at,
                    static_cast<const char*>(expected.data()) + at, bytes);
    }
  }

  const ModelTasks& model_;
  const graph::Graph& graph_;
  const PartialBuffers& partial_;
  std::map<int, Tensor> computed_;  // by buffer: which elements are defined, if not all
  std::set<int> unknown_;           // buffers of which that is not known
  const Reference& reference_;
  VerifyReport& report_;
  std::vector<bool> done_;  // per value: it is in memory
  std::vector<int> views_;  // nodes whose operands are not all there yet
  Tensor sizes_;            // of the run
  std::map<ValueId, const graph::ShapeParts*> outputs_;  // those that vary
};

// What is in memory at some moment of a run, or was computed at compile time.
std::set<ValueId> values_in_memory(const ModelTasks& model) {
  std::set<ValueId> ids;
  for (const graph::TaskCall& call : model.tasks.calls) {
    if (call.loop >= 0) continue;
    const auto& last = model.graph.nodes[static_cast<size_t>(call.nodes.back())];
    ids.insert(last.outputs.begin(), last.outputs.end());
  }
  for (const graph::Node& node : model.graph.nodes) {
    if (node.op->kind == graph::Kind::kView) ids.insert(node.outputs[0]);
  }
  for (size_t i = 0; i < model.graph.values.size(); ++i) {
    if (model.graph.values[i].constant) ids.insert(static_cast<ValueId>(i));
  }
  ids.erase(kNoValue);
  return ids;
}

Reference given_reference(const std::vector<NamedTensor>& tensors, const graph::Graph& graph,
                          const std::set<ValueId>& known, VerifyReport& report) {
  std::map<std::string, ValueId> names;
  for (const ValueId id : known) names.emplace(name_of(graph, id), id);
  std::set<std::string> inputs;
  for (const ValueId id : graph.inputs) inputs.insert(graph.value(id).name);
  Reference reference;
  for (const NamedTensor& tensor : tensors) {
    if (const auto id = names.find(tensor.name); id != names.end())
      reference[id->second] = {.tensor = tensor.tensor};
    else if (!inputs.contains(tensor.name))
      report.missing.push_back(tensor.name);
  }
  return reference;
}

VerifyReport report_of(const ModelTasks& model, double tolerance) {
  VerifyReport report;
  report.tolerance = tolerance;
  report.tasks = static_cast<int>(model.tasks.calls.size());
  return report;
}

// Runs the tasks one by one beside the reference.
Result<VerifyReport> compare_run(const ModelTasks& model, const Assembly& assembly, StepRun steps,
                                 const std::vector<Tensor>& inputs, const Reference& reference,
                                 VerifyReport report) {
  Checker checker(model, assembly.partial, reference, report);
  checker.check_constants();
  HONE_RETURN_IF_ERROR(checker.run(steps, inputs));
  if (report.compared == 0)
    return invalid("no tensor of {} is one that the reference has", model.graph.file);
  return report;
}

}  // namespace

Result<VerifyReport> verify_tasks(const graph::Graph& imported, const ModelTasks& model,
                                  const Assembly& assembly, const std::vector<Tensor>& inputs,
                                  double tolerance, const std::atomic<bool>* interrupted) {
  const NaiveOptions naive{.threads = machine::local().target().cpu().cores,
                           .interrupted = interrupted};
  // Before the reference, which takes long: the device may not be here.
  HONE_ASSIGN_OR_RETURN(StepRun steps, StepRun::create(assembly, model.threads()));
  HONE_ASSIGN_OR_RETURN(const Reference reference, naive_reference(imported, model.graph, inputs,
                                                                   values_in_memory(model), naive));
  return compare_run(model, assembly, std::move(steps), inputs, reference,
                     report_of(model, tolerance));
}

Result<VerifyReport> verify_tasks(const graph::Graph& imported, const graph::Graph& reference,
                                  const ModelTasks& model, const Assembly& assembly,
                                  const std::vector<Tensor>& inputs,
                                  const std::vector<Tensor>& dense, double tolerance,
                                  const std::atomic<bool>* interrupted) {
  const NaiveOptions naive{.threads = machine::local().target().cpu().cores,
                           .interrupted = interrupted};
  HONE_ASSIGN_OR_RETURN(StepRun steps, StepRun::create(assembly, model.threads()));
  // Values that a file names are the same in both; others may be anything.
  std::set<ValueId> same = values_in_memory(model);
  std::erase_if(same, [&](ValueId id) {
    const auto i = static_cast<size_t>(id);
    return i >= imported.values.size() || i >= reference.values.size() ||
           imported.values[i].name != reference.values[i].name || model.graph.value(id).constant;
  });
  HONE_ASSIGN_OR_RETURN(Reference expected,
                        naive_reference(reference, model.graph, dense, same, naive));
  for (auto& [id, value] : expected) value.sized = true;
  return compare_run(model, assembly, std::move(steps), inputs, expected,
                     report_of(model, tolerance));
}

Result<VerifyReport> verify_tasks(const std::vector<NamedTensor>& reference,
                                  const ModelTasks& model, const Assembly& assembly,
                                  const std::vector<Tensor>& inputs, double tolerance) {
  VerifyReport report = report_of(model, tolerance);
  const Reference given = given_reference(reference, model.graph, values_in_memory(model), report);
  HONE_ASSIGN_OR_RETURN(StepRun steps, StepRun::create(assembly, model.threads()));
  return compare_run(model, assembly, std::move(steps), inputs, given, std::move(report));
}

}  // namespace hone
