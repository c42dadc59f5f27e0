#include "hone/session/naive_run.h"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "hone/base/allocation.h"
#include "hone/base/clock.h"
#include "hone/compute/kernel_params.h"
#include "hone/graph/emit.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/loop_body.h"
#include "hone/graph/node_names.h"
#include "hone/graph/op.h"
#include "hone/ir/interpreter.h"
#include "hone/machine/local.h"
#include "hone/session/loaded_kernel.h"
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
  const target::Target& host = machine::local().target();
  if (compute::flops(dag) > max_plain_flops) {
    HONE_ASSIGN_OR_RETURN(const space::Space space,
                          space::Space::create(dag, host, trial::Accuracy::kStrict));
    Result<Kernel> kernel = build_kernel(dag, space.steps(space.default_point()), host);
    if (kernel.status().code() != Code::kUnsupported) return kernel;  // not too much code
  }
  Result<Kernel> kernel = build_kernel(dag, plain_steps(dag), host);
  return kernel.ok() ? std::move(kernel) : build_kernel(dag, {}, host);
}

Result<LoadedKernel> build_loaded(const compute::Dag& dag, double max_plain_flops) {
  HONE_ASSIGN_OR_RETURN(Kernel kernel, build(dag, max_plain_flops));
  return LoadedKernel::load(std::move(kernel));
}

// As a kernel of the same key takes them.
Status order_arguments(graph::Emitted& emitted, const compute::Dag& kernel) {
  const std::vector<size_t> order = compute::order_like(emitted.dag, kernel);
  emitted.dag.params = compute::in_order(emitted.dag.params, order);
  emitted.arguments = compute::in_order(emitted.arguments, order);
  return compute::check_same_params(kernel, emitted.dag);
}

// What interpreting a node takes, about: the elements that it touches and its arithmetic.
double interpreted_operations(const compute::Dag& dag) {
  double operations = compute::flops(dag);
  for (const compute::Stage& stage : dag.stages) {
    if (stage.is_extern()) return HUGE_VAL;
  }
  for (const ir::Param& param : dag.params)
    operations += static_cast<double>(num_elements(param.buffer->shape));
  return operations;
}

Status check_time(const NaiveOptions& options) {
  HONE_RETURN_IF_ERROR(check_cancelled(options.interrupted));
  if (options.deadline > 0 && real_clock().now_seconds() > options.deadline)
    return error(Code::kTimeout, "running the model as imported takes too long");
  return ok_status();
}

}  // namespace

// The nodes of a graph, each for itself, and their kernels.
struct NaiveModel::State {
  State(const graph::Graph& of, const NaiveOptions& how) : graph(of), options(how) {}
  const graph::Graph& graph;
  NaiveOptions options;
  std::vector<graph::LoneNode> alone;
  std::vector<graph::Emitted> emitted;  // per node; empty for one that moves elements
  std::vector<int> kernel_of;           // per node; -1: interpreted
  std::vector<std::optional<LoadedKernel>> kernels;
  std::map<size_t, NaiveModel> bodies;  // of loops, by node

  std::vector<int> first;  // per kernel: a node that it is of
  double flops = 0;

  // Finds the distinct tasks of all nodes.
  Status find_kernels() {
    std::map<uint64_t, int> known;
    alone.reserve(graph.nodes.size());  // moving graphs apart would copy them
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      alone.push_back(graph::isolate(graph, graph.nodes[i]));
      emitted.emplace_back();
      kernel_of.push_back(-1);
      if (const auto& loop = graph.nodes[i].loop) {
        HONE_ASSIGN_OR_RETURN(NaiveModel body, NaiveModel::create(loop->graph, options));
        flops += body.flops() * loop->expected_turns;
        bodies.emplace(i, std::move(body));
      }
      if (graph.nodes[i].op->emit == nullptr) continue;
      const graph::Graph& lone = alone.back().graph;
      const std::vector<bool> unknown(lone.values.size(), false);
      HONE_ASSIGN_OR_RETURN(emitted.back(), graph::EmitContext(lone, {0}, unknown).run());
      const compute::Dag& dag = emitted.back().dag;
      flops += compute::flops(dag);
      if (interpreted_operations(dag) <= options.max_interpreted) continue;
      const auto [entry, fresh] =
          known.try_emplace(compute::task_key(dag), static_cast<int>(first.size()));
      if (fresh) first.push_back(static_cast<int>(i));
      kernel_of.back() = entry->second;
      const auto shared = static_cast<size_t>(first[static_cast<size_t>(entry->second)]);
      HONE_RETURN_IF_ERROR(order_arguments(emitted.back(), emitted[shared].dag));
    }
    return ok_status();
  }

  Status compile() {
    for (auto& [node, body] : bodies) HONE_RETURN_IF_ERROR(body.compile());
    kernels.resize(first.size());
    std::vector<Status> statuses(first.size());
    ThreadPool pool(options.threads);
    pool.parallel_for(std::ssize(first), [&](int64_t k) {
      const auto i = static_cast<size_t>(k);
      if (!check_time(options).ok()) return;
      const AllocatesFor purpose(graph::name_and_type(graph.nodes[static_cast<size_t>(first[i])]));
      Result<LoadedKernel> kernel =
          build_loaded(emitted[static_cast<size_t>(first[i])].dag, options.max_plain_flops);
      if (kernel.ok())
        kernels[i] = std::move(kernel).value();
      else
        statuses[i] = kernel.status();
    });
    HONE_RETURN_IF_ERROR(check_time(options));
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i].ok()) continue;
      return error(statuses[i].code(), "{}: {}", graph.nodes[static_cast<size_t>(first[i])].name,
                   statuses[i].message());
    }
    return ok_status();
  }
};

namespace {

// One run.
class Runner {
 public:
  explicit Runner(const NaiveModel::State& model)
      : model_(model), graph_(model.graph), values_(model.graph.values.size()) {}

  Status run(const std::vector<Tensor>& inputs, const NaiveModel::OnValue& on_value) {
    for (size_t i = 0; i < inputs.size(); ++i) at(graph_.inputs[i]) = inputs[i];
    std::vector<size_t> last_reader(values_.size(), graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const graph::ValueId in : graph_.nodes[i].inputs) {
        if (in != graph::kNoValue) last_reader[static_cast<size_t>(in)] = i;
      }
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      HONE_RETURN_IF_ERROR(check_time(model_.options));
      const graph::Node& node = graph_.nodes[i];
      const AllocatesFor purpose(graph::name_and_type(node));
      const bool made = node.op->emit != nullptr;
      const Status status = node.loop != nullptr ? repeat(i, on_value)
                            : made               ? run_kernel(i)
                                                 : move(i);
      if (!status.ok()) return error(status.code(), "{}: {}", node.name, status.message());
      for (const graph::ValueId out : node.outputs) {
        if (out != graph::kNoValue) on_value(node, out, at(out), made);
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
    if (graph_.nodes[index].type == "hone.Blank") {
      const graph::ValueId out = graph_.nodes[index].outputs[0];
      at(out) = Tensor(graph_.value(out).dtype, graph_.value(out).shape);
      return ok_status();
    }
    graph::LoneNode alone = model_.alone[index];
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
    return ok_status();
  }

  // The values that a loop ends with.
  Status repeat(size_t index, const NaiveModel::OnValue& on_value) {
    const graph::Node& node = graph_.nodes[index];
    const graph::LoopBody& loop = *node.loop;
    const NaiveModel& body = model_.bodies.at(index);
    std::vector<Tensor> values(1);  // the number of the turn, what is carried, what is captured
    for (size_t i = 1; i < node.inputs.size(); ++i) values.push_back(operand(node.inputs[i]));
    std::vector<Tensor> stacked;
    for (size_t i = 0; i < loop.rows(); ++i) {
      const graph::Value& row = loop.graph.value(loop.graph.outputs[loop.carried + i]);
      stacked.emplace_back(row.dtype, loop.stacked_shape(i));
    }
    int64_t turn = 0;
    for (;; ++turn) {
      if (loop.conditional && values[1].at(0) == 0) break;
      if (node.has_input(0) && turn >= operand(node.inputs[0]).as<int64_t>()[0]) break;
      if (turn >= loop.most && !loop.beyond.empty())
        return invalid("{}", graph::fault_message(loop.beyond, shapes_of_fault(loop, values)));
      if (turn >= loop.most) break;
      values[0] = Tensor(DType::kI64, {});
      values[0].as<int64_t>()[0] = turn;
      HONE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                            one_turn(body, loop, values, on_value));
      for (size_t i = 0; i < loop.carried; ++i) values[1 + i] = results[i];
      for (size_t i = 0; i < stacked.size(); ++i)
        set_row(stacked[i], loop.reversed[i] ? loop.most - 1 - turn : turn,
                results[loop.carried + i]);
    }
    const auto declare = [&](size_t i, Tensor value) {
      if (i < node.outputs.size() && node.outputs[i] != graph::kNoValue)
        at(node.outputs[i]) = std::move(value);
    };
    for (size_t i = 0; i < loop.carried; ++i) declare(i, values[1 + i]);
    for (size_t i = 0; i < stacked.size(); ++i) declare(loop.carried + i, stacked[i]);
    Tensor turns(DType::kI64, {1});
    turns.as<int64_t>()[0] = turn;
    declare(loop.graph.outputs.size(), turns);
    return ok_status();
  }

  // Returns the two shapes that the loop's message names, if any.
  static std::span<const int64_t> shapes_of_fault(const graph::LoopBody& loop,
                                                  const std::vector<Tensor>& values) {
    if (!loop.names_shapes) return {};
    return values[loop.shapes_operand()].as<int64_t>();
  }

  static void set_row(Tensor& stacked, int64_t row, const Tensor& value) {
    std::memcpy(static_cast<char*>(stacked.data()) + row * value.bytes(), value.data(),
                static_cast<size_t>(value.bytes()));
  }

  // Returns the outputs of a body.
  static Result<std::vector<Tensor>> one_turn(const NaiveModel& body, const graph::LoopBody& loop,
                                              const std::vector<Tensor>& inputs,
                                              const NaiveModel::OnValue& on_value) {
    std::map<graph::ValueId, Tensor> wanted;
    for (const graph::ValueId out : loop.graph.outputs) {
      const graph::Value& value = loop.graph.value(out);
      wanted[out] = value.constant ? *value.constant : Tensor();
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (const auto it = wanted.find(loop.graph.inputs[i]); it != wanted.end())
        it->second = inputs[i];
    }
    HONE_RETURN_IF_ERROR(body.run(
        inputs, [&](const graph::Node& node, graph::ValueId id, Tensor& tensor, bool made) {
          on_value(node, graph::kNoValue, tensor, made);
          if (const auto it = wanted.find(id); id != graph::kNoValue && it != wanted.end())
            it->second = tensor;
        }));
    std::vector<Tensor> outputs;
    for (const graph::ValueId out : loop.graph.outputs) outputs.push_back(wanted.at(out));
    return outputs;
  }

  Status run_kernel(size_t index) {
    const graph::Emitted& emitted = model_.emitted[index];
    const int k = model_.kernel_of[index];
    if (k >= 0) {
      const LoadedKernel& kernel = *model_.kernels[static_cast<size_t>(k)];
      std::vector<Tensor> arguments = arguments_of(index, kernel.program().params);
      return kernel.run(arguments, model_.options.threads);
    }
    const ir::Program program = compute::naive_program(emitted.dag);
    std::vector<Tensor> arguments = arguments_of(index, program.params);
    return ir::run(program, arguments);
  }

  // What the node reads and writes; of what else a program needs, nothing or, to interpret it,
  // memory.
  std::vector<Tensor> arguments_of(size_t index, const std::vector<ir::Param>& params) {
    const graph::Emitted& emitted = model_.emitted[index];
    const bool interpreted = model_.kernel_of[index] < 0;
    std::vector<Tensor> arguments(params.size());
    for (size_t k = 0; k < params.size(); ++k) {
      if (k >= emitted.arguments.size()) {
        if (interpreted) arguments[k] = Tensor(params[k].buffer->dtype, params[k].buffer->shape);
        continue;
      }
      const graph::EmittedArgument& argument = emitted.arguments[k];
      if (argument.constant) {
        arguments[k] = *argument.constant;
        continue;
      }
      const graph::ValueId id = model_.alone[index].originals[static_cast<size_t>(argument.value)];
      if (emitted.dag.params[k].role == ir::Role::kOutput)
        at(id) = Tensor(graph_.value(id).dtype, graph_.value(id).shape);
      arguments[k] = operand(id);
    }
    return arguments;
  }

  const NaiveModel::State& model_;
  const graph::Graph& graph_;
  std::vector<Tensor> values_;
};

}  // namespace

NaiveModel::NaiveModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
NaiveModel::NaiveModel(NaiveModel&&) noexcept = default;
NaiveModel& NaiveModel::operator=(NaiveModel&&) noexcept = default;
NaiveModel::~NaiveModel() = default;

Result<NaiveModel> NaiveModel::create(const graph::Graph& graph, const NaiveOptions& options) {
  auto state = std::make_unique<State>(graph, options);
  HONE_RETURN_IF_ERROR(state->find_kernels());
  return NaiveModel(std::move(state));
}

int NaiveModel::kernels() const { return static_cast<int>(state_->first.size()); }

double NaiveModel::flops() const { return state_->flops; }

Status NaiveModel::compile() { return state_->compile(); }

Status NaiveModel::run(const std::vector<Tensor>& inputs, const OnValue& on_value) const {
  return Runner(*state_).run(inputs, on_value);
}

void NaiveModel::set_deadline(double deadline) {
  state_->options.deadline = deadline;
  for (auto& [node, body] : state_->bodies) body.set_deadline(deadline);
}

Status naive_run(
    const graph::Graph& graph, const std::vector<Tensor>& inputs, const NaiveOptions& options,
    const std::function<void(const graph::Node&, graph::ValueId, const Tensor&)>& on_value) {
  HONE_ASSIGN_OR_RETURN(NaiveModel model, NaiveModel::create(graph, options));
  HONE_RETURN_IF_ERROR(model.compile());
  return model.run(inputs, [&](const graph::Node& node, graph::ValueId id, Tensor& tensor, bool) {
    if (id != graph::kNoValue) on_value(node, id, tensor);
  });
}

}  // namespace hone
