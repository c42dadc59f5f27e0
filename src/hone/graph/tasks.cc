#include "hone/graph/tasks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hone/base/hash.h"
#include "hone/compute/collapse_axes.h"
#include "hone/compute/join_reduce_axes.h"
#include "hone/compute/kernel_params.h"
#include "hone/graph/emit.h"
#include "hone/graph/unsupported_list.h"

namespace hone::graph {
namespace {

uint64_t tensor_hash(const Tensor& tensor) {
  uint64_t hash = static_cast<uint64_t>(tensor.dtype());
  for (const int64_t extent : tensor.shape())
    hash = hash_combine(hash, static_cast<uint64_t>(extent));
  return hash_bytes(tensor.data(), static_cast<size_t>(tensor.bytes()), hash);
}

bool all_finite(const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32)
    return std::ranges::all_of(tensor.as<float>(), [](float x) { return std::isfinite(x); });
  for (int64_t i = 0; is_float(tensor.dtype()) && i < tensor.size(); ++i) {
    if (!std::isfinite(tensor.at(i))) return false;
  }
  return true;
}

class Extractor {
 public:
  explicit Extractor(const Graph& graph)
      : graph_(graph), non_negative_(non_negative_values(graph)) {}

  Result<TaskList> run(const TaskOptions& options) {
    list_.varying = graph_.varying;
    for (const ValueId id : graph_.inputs) {
      if (id == graph_.varying.sizes)
        list_.sizes = graph_.value(id).storage.buffer;
      else
        list_.inputs.push_back(info(graph_.value(id).name, id));
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      list_.outputs.push_back(info(graph_.output_names[i], graph_.outputs[i]));
    }
    find_extents();
    list_.buffers = graph_.buffers;
    UnsupportedList unsupported;
    FuseOptions groups{.max_followers = options.max_followers};
    if (options.join) {
      groups.join = [&](const std::vector<int>& first, const std::vector<int>& second) {
        std::vector<int> both = first;
        both.insert(both.end(), second.begin(), second.end());
        const Result<Emitted>&joined = emit_once(both), &a = emit_once(first),
              &b = emit_once(second);
        return joined.ok() && a.ok() && b.ok() && options.join(joined->dag, a->dag, b->dag);
      };
    }
    for (const std::vector<int>& group : fuse(graph_, groups)) {
      if (makes_nothing(group)) continue;
      Result<Emitted>& made = emit_once(group);
      HONE_RETURN_IF_ERROR(unsupported.add(made.status()));
      if (!made.ok()) continue;
      Emitted& emitted = *made;
      TaskCall call;
      call.key = compute::task_key(emitted.dag);
      call.name = graph_.nodes[static_cast<size_t>(group.front())].name;
      call.dag = std::move(emitted.dag);
      call.nodes = group;
      for (const EmittedArgument& argument : emitted.arguments)
        call.arguments.push_back(place(argument));
      add_to_group(call);
      list_.calls.push_back(std::move(call));
    }
    for (const TaskGroup& group : list_.groups) keep_common_zeros(group);
    HONE_RETURN_IF_ERROR(unsupported.all(graph_.file));
    return std::move(list_);
  }

 private:
  // Returns what a group of nodes computes. Groups that may be joined are asked for several times.
  Result<Emitted>& emit_once(const std::vector<int>& group) {
    const auto made = emitted_.find(group);
    return made != emitted_.end() ? made->second
                                  : emitted_.emplace(group, emit(group)).first->second;
  }
  Result<Emitted> emit(const std::vector<int>& group) {
    Result<Emitted> emitted = EmitContext(graph_, group, non_negative_).run();
    if (!emitted.ok()) return emitted;
    emitted->dag = compute::join_reduce_axes(compute::collapse_axes(emitted->dag));
    note_zeros(*emitted);
    return emitted;
  }

  // Copies of values without elements.
  bool makes_nothing(const std::vector<int>& group) const {
    const ValueId result = graph_.nodes[static_cast<size_t>(group.back())].outputs[0];
    return result != kNoValue && num_elements(graph_.value(result).shape) == 0;
  }

  void find_extents() {
    std::map<ValueId, const Node*> compact;  // by result
    for (const Node& node : graph_.nodes) {
      if (node.type == "hone.Compact") compact.emplace(node.outputs[0], &node);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (const auto it = compact.find(graph_.outputs[i]); it != compact.end())
        list_.outputs[i].extents = graph_.value(it->second->outputs[1]).storage.buffer;
    }
  }

  TensorInfo info(const std::string& name, ValueId id) const {
    return {.name = name, .dtype = graph_.value(id).dtype, .shape = graph_.value(id).shape};
  }

  Argument place(const EmittedArgument& argument) {
    if (argument.constant) return constant(*argument.constant);
    const Value& value = graph_.value(argument.value);
    if (value.constant) {
      const auto [it, fresh] = constant_of_value_.emplace(argument.value, 0);
      if (fresh) it->second = constant(*value.constant).index;
      return {Argument::Kind::kConstant, it->second};
    }
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(value.storage.buffer)];
    switch (buffer.kind) {
      case Buffer::Kind::kInput: return {Argument::Kind::kInput, buffer.index};
      case Buffer::Kind::kOutput: return {Argument::Kind::kOutput, buffer.index};
      default: return {Argument::Kind::kArena, value.storage.buffer};
    }
  }

  Argument constant(const Tensor& tensor) {
    const uint64_t hash = tensor_hash(tensor);
    const auto [it, fresh] =
        constant_of_hash_.emplace(hash, static_cast<int>(list_.constants.size()));
    if (fresh) {
      list_.constants.push_back(tensor);
      list_.constant_hashes.push_back(hash);
    }
    return {Argument::Kind::kConstant, it->second};
  }

  // The borders of the inputs; none beside a weight that is infinite, which times zero is no zero.
  void note_zeros(Emitted& emitted) {
    bool any = false;
    for (size_t i = 0; i < emitted.arguments.size(); ++i) {
      const ValueId id = emitted.arguments[i].value;
      if (id == kNoValue || graph_.value(id).constant) continue;
      const auto& buffer = graph_.buffers[static_cast<size_t>(graph_.value(id).storage.buffer)];
      ir::Param& param = emitted.dag.params[i];
      const bool known = param.role == ir::Role::kInput && buffer.has_border() &&
                         buffer.kind == Buffer::Kind::kArena && param.buffer->shape == buffer.shape;
      if (known) param.zeros = buffer.border;
      any = any || known;
    }
    if (!any || std::ranges::all_of(emitted.arguments, [&](const EmittedArgument& argument) {
          return is_finite(argument);
        }))
      return;
    for (ir::Param& param : emitted.dag.params) param.zeros.clear();
  }

  // Returns whether a constant is finite; arguments that are no constants count as finite.
  bool is_finite(const EmittedArgument& argument) {
    if (argument.constant) return all_finite(*argument.constant);
    if (!graph_.value(argument.value).constant) return true;
    const auto [it, fresh] = finite_.emplace(argument.value, true);
    if (fresh) it->second = all_finite(*graph_.value(argument.value).constant);
    return it->second;
  }

  // The calls of a group run the same code, so that they have to know the same.
  void keep_common_zeros(const TaskGroup& group) {
    const auto params = [&](int call) -> std::vector<ir::Param>& {
      return list_.calls[static_cast<size_t>(call)].dag.params;
    };
    for (size_t i = 0; i < params(group.calls[0]).size(); ++i) {
      const Shape& zeros = params(group.calls[0])[i].zeros;
      if (std::ranges::all_of(group.calls,
                              [&](int call) { return params(call)[i].zeros == zeros; }))
        continue;
      for (const int call : group.calls) params(call)[i].zeros.clear();
    }
  }

  // Orders the arguments as the kernel of the group takes them.
  static void order_arguments(TaskCall& call, const compute::Dag& kernel) {
    const std::vector<size_t> order = compute::order_like(call.dag, kernel);
    call.dag.params = compute::in_order(call.dag.params, order);
    call.arguments = compute::in_order(call.arguments, order);
  }

  void add_to_group(TaskCall& call) {
    const auto [it, fresh] = group_of_key_.emplace(call.key, static_cast<int>(list_.groups.size()));
    call.group = it->second;
    if (fresh) {
      list_.groups.push_back({call.key, {}});
    } else {
      const TaskGroup& group = list_.groups[static_cast<size_t>(call.group)];
      order_arguments(call, list_.calls[static_cast<size_t>(group.calls.front())].dag);
    }
    list_.groups[static_cast<size_t>(call.group)].calls.push_back(
        static_cast<int>(list_.calls.size()));
  }

  const Graph& graph_;
  const std::vector<bool> non_negative_;
  TaskList list_;
  std::map<ValueId, int> constant_of_value_;
  std::map<uint64_t, int> constant_of_hash_, group_of_key_;
  std::map<std::vector<int>, Result<Emitted>> emitted_;
  std::map<ValueId, bool> finite_;  // constants that were looked at
};

}  // namespace

Result<TaskList> extract_tasks(const Graph& graph, const TaskOptions& options) {
  return Extractor(graph).run(options);
}

uint64_t constants_hash(const TaskList& tasks, const TaskCall& call) {
  uint64_t hash = 0;
  for (const Argument& argument : call.arguments) {
    if (argument.kind != Argument::Kind::kConstant) continue;
    hash = hash_combine(hash, tasks.constant_hashes[static_cast<size_t>(argument.index)]);
  }
  return hash;
}

double total_flops(const TaskList& tasks) {
  double total = 0;
  for (const TaskCall& call : tasks.calls) total += compute::flops(call.dag);
  return total;
}

std::string describe(const TaskList& tasks) {
  std::string text = fmt::format("{} tasks, {} distinct, {:.3f} GFLOP\n", tasks.calls.size(),
                                 tasks.groups.size(), total_flops(tasks) / 1e9);
  for (const TaskGroup& group : tasks.groups) {
    const TaskCall& call = tasks.calls[static_cast<size_t>(group.calls.front())];
    text += fmt::format("{:3}x {:9.2f} MFLOP  {}  ({})\n", group.calls.size(),
                        compute::flops(call.dag) / 1e6, compute::describe(call.dag), call.name);
  }
  return text;
}

}  // namespace hone::graph
