#include "hone/assembly/naive_run.h"

#include <map>

#include "hone/assembly/kernel.h"
#include "hone/compute/kernel_params.h"
#include "hone/graph/emit.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/op.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone {
namespace {

// Each stage in a parallel loop over all of its axes but the last; as it stands where that is not
// possible.
schedule::Steps plain_steps(const compute::Dag& dag) {
  schedule::Steps steps;
  for (const compute::Stage& stage : dag.stages) {
    if (stage.is_extern() || stage.axes.size() < 2) continue;
    std::string loop;
    schedule::Fuse fuse{stage.name, {}};
    for (size_t i = 0; i + 1 < stage.axes.size(); ++i) {
      loop += (i > 0 ? "@" : "") + stage.axes[i].var->name;
      fuse.loops.push_back(stage.axes[i].var->name);
    }
    if (fuse.loops.size() > 1) steps.push_back(fuse);
    steps.push_back(schedule::Parallel{stage.name, loop});
  }
  return steps;
}

Result<Kernel> build(const compute::Dag& dag, double max_plain_flops) {
  const target::Target& host = target::host();
  if (compute::flops(dag) > max_plain_flops) {
    HONE_ASSIGN_OR_RETURN(const space::Space space,
                          space::Space::create(dag, host, space::Accuracy::kStrict));
    Result<Kernel> kernel = build_kernel(dag, space.steps(space.default_point()), host);
    if (kernel.status().code() != Code::kUnsupported) return kernel;  // not too much code
  }
  Result<Kernel> kernel = build_kernel(dag, plain_steps(dag), host);
  return kernel.ok() ? std::move(kernel) : build_kernel(dag, {}, host);
}

// As a kernel of the same key takes them.
Status order_arguments(graph::Emitted& emitted, const compute::Dag& kernel) {
  const std::vector<size_t> order = compute::order_like(emitted.dag, kernel);
  emitted.dag.params = compute::in_order(emitted.dag.params, order);
  emitted.arguments = compute::in_order(emitted.arguments, order);
  return compute::check_same_params(kernel, emitted.dag);
}

class Runner {
 public:
  Runner(const graph::Graph& graph, const NaiveOptions& options)
      : graph_(graph), options_(options), values_(graph.values.size()) {}

  // Builds the distinct tasks of all nodes at once.
  Status compile() {
    std::vector<int> first;  // a node of each kernel
    std::map<uint64_t, size_t> known;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      alone_.push_back(graph::isolate(graph_, graph_.nodes[i]));
      emitted_.emplace_back();
      kernel_of_.push_back(0);
      if (graph_.nodes[i].op->emit == nullptr) continue;
      const graph::Graph& alone = alone_.back().graph;
      const std::vector<bool> unknown(alone.values.size(), false);
      HONE_ASSIGN_OR_RETURN(emitted_.back(), graph::EmitContext(alone, {0}, unknown).run());
      const auto [entry, fresh] =
          known.try_emplace(compute::task_key(emitted_.back().dag), first.size());
      if (fresh) first.push_back(static_cast<int>(i));
      kernel_of_.back() = entry->second;
      const auto shared = static_cast<size_t>(first[entry->second]);
      HONE_RETURN_IF_ERROR(order_arguments(emitted_.back(), emitted_[shared].dag));
    }
    kernels_.resize(first.size());
    std::vector<Status> statuses(first.size());
    ThreadPool pool(options_.threads);
    pool.parallel_for(std::ssize(first), [&](int64_t k) {
      const auto i = static_cast<size_t>(k);
      if (is_cancelled(options_.interrupted)) return;
      Result<Kernel> kernel =
          build(emitted_[static_cast<size_t>(first[i])].dag, options_.max_plain_flops);
      if (kernel.ok())
        kernels_[i] = std::move(kernel).value();
      else
        statuses[i] = kernel.status();
    });
    HONE_RETURN_IF_ERROR(check_cancelled(options_.interrupted));
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i].ok()) continue;
      return error(statuses[i].code(), "{}: {}", graph_.nodes[static_cast<size_t>(first[i])].name,
                   statuses[i].message());
    }
    return ok_status();
  }

  Status run(
      const std::vector<Tensor>& inputs,
      const std::function<void(const graph::Node&, graph::ValueId, const Tensor&)>& on_value) {
    for (size_t i = 0; i < inputs.size(); ++i) at(graph_.inputs[i]) = inputs[i];
    std::vector<size_t> last_reader(values_.size(), graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const graph::ValueId in : graph_.nodes[i].inputs) {
        if (in != graph::kNoValue) last_reader[static_cast<size_t>(in)] = i;
      }
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      HONE_RETURN_IF_ERROR(check_cancelled(options_.interrupted));
      const graph::Node& node = graph_.nodes[i];
      const Status status = node.op->emit != nullptr ? run_kernel(i) : move(i);
      if (!status.ok()) return error(status.code(), "{}: {}", node.name, status.message());
      for (const graph::ValueId out : node.outputs) {
        if (out != graph::kNoValue) on_value(node, out, at(out));
      }
      for (const graph::ValueId in : node.inputs) {
        if (in != graph::kNoValue && last_reader[static_cast<size_t>(in)] == i) at(in) = Tensor();
      }
    }
    return ok_status();
  }

 private:
  Tensor& at(graph::ValueId id) { return values_[static_cast<size_t>(id)]; }
  [[nodiscard]] Tensor operand(graph::ValueId id) {
    const graph::Value& value = graph_.value(id);
    return value.constant ? *value.constant : at(id);
  }

  // Views and what else only moves elements.
  Status move(size_t index) {
    graph::LoneNode& alone = alone_[index];
    const graph::Node& node = alone.graph.nodes[0];
    if (node.op->fold == nullptr)
      return error(Code::kUnsupported, "({}) is supported on constants only", node.type);
    for (const graph::ValueId in : node.inputs) {
      if (in != graph::kNoValue)
        alone.graph.value(in).constant = operand(alone.originals[static_cast<size_t>(in)]);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> results, node.op->fold(alone.graph, node));
    for (size_t k = 0; k < results.size() && k < node.outputs.size(); ++k) {
      if (node.outputs[k] != graph::kNoValue)
        at(alone.originals[static_cast<size_t>(node.outputs[k])]) = results[k];
    }
    if (node.type == "Dropout" && node.outputs.size() > 1 && node.outputs[1] != graph::kNoValue) {
      // Outside training every element is kept.
      const graph::Value& mask = alone.graph.value(node.outputs[1]);
      Tensor all(DType::kBool, mask.shape);
      for (int64_t i = 0; i < all.size(); ++i) all.set(i, 1);
      at(alone.originals[static_cast<size_t>(node.outputs[1])]) = all;
    }
    alone = {};
    return ok_status();
  }

  Status run_kernel(size_t index) {
    const graph::Emitted& emitted = emitted_[index];
    const Kernel& kernel = kernels_[kernel_of_[index]];
    std::vector<Tensor> arguments(kernel.program.params.size());
    for (size_t k = 0; k < emitted.arguments.size(); ++k) {
      const graph::EmittedArgument& argument = emitted.arguments[k];
      if (argument.constant) {
        arguments[k] = *argument.constant;
        continue;
      }
      const graph::ValueId id = alone_[index].originals[static_cast<size_t>(argument.value)];
      if (emitted.dag.params[k].role == ir::Role::kOutput)
        at(id) = Tensor(graph_.value(id).dtype, graph_.value(id).shape);
      arguments[k] = operand(id);
    }
    return hone::run(kernel, arguments, options_.threads);
  }

  const graph::Graph& graph_;
  const NaiveOptions& options_;
  std::vector<Tensor> values_;
  std::vector<graph::LoneNode> alone_;
  std::vector<graph::Emitted> emitted_;  // per node; empty for one that moves elements
  std::vector<size_t> kernel_of_;        // per node
  std::vector<Kernel> kernels_;
};

}  // namespace

Status naive_run(
    const graph::Graph& graph, const std::vector<Tensor>& inputs, const NaiveOptions& options,
    const std::function<void(const graph::Node&, graph::ValueId, const Tensor&)>& on_value) {
  Runner runner(graph, options);
  HONE_RETURN_IF_ERROR(runner.compile());
  return runner.run(inputs, on_value);
}

}  // namespace hone
