#include "hone/graph/tasks.h"

#include <algorithm>
#include <map>
#include <set>

#include "hone/base/hash.h"
#include "hone/compute/collapse_axes.h"
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

class Extractor {
 public:
  explicit Extractor(const Graph& graph)
      : graph_(graph), non_negative_(non_negative_values(graph)) {}

  Result<TaskList> run(const TaskOptions& options) {
    for (const ValueId id : graph_.inputs) list_.inputs.push_back(info(graph_.value(id).name, id));
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
        const Result<Emitted> joined = emit(both), a = emit(first), b = emit(second);
        return joined.ok() && a.ok() && b.ok() && options.join(joined->dag, a->dag, b->dag);
      };
    }
    for (const std::vector<int>& group : fuse(graph_, groups)) {
      if (makes_nothing(group)) continue;
      Result<Emitted> made = emit(group);
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
    HONE_RETURN_IF_ERROR(unsupported.all(graph_.file));
    return std::move(list_);
  }

 private:
  Result<Emitted> emit(const std::vector<int>& group) const {
    Result<Emitted> emitted = EmitContext(graph_, group, non_negative_).run();
    if (emitted.ok()) emitted->dag = compute::collapse_axes(emitted->dag);
    return emitted;
  }

  // Copies of values without elements.
  bool makes_nothing(const std::vector<int>& group) const {
    const ValueId result = graph_.nodes[static_cast<size_t>(group.back())].outputs[0];
    return result != kNoValue && num_elements(graph_.value(result).shape) == 0;
  }

  void find_extents() {
    for (const Node& node : graph_.nodes) {
      if (node.type != "hone.Compact") continue;
      for (size_t i = 0; i < graph_.outputs.size(); ++i) {
        if (graph_.outputs[i] == node.outputs[0])
          list_.outputs[i].extents = graph_.value(node.outputs[1]).storage.buffer;
      }
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
    const auto& known = list_.constant_hashes;
    const auto it = std::find(known.begin(), known.end(), hash);
    const auto index = static_cast<int>(it - known.begin());
    if (it == known.end()) {
      list_.constants.push_back(tensor);
      list_.constant_hashes.push_back(hash);
    }
    return {Argument::Kind::kConstant, index};
  }

  void add_to_group(TaskCall& call) {
    const auto it = std::find_if(list_.groups.begin(), list_.groups.end(),
                                 [&](const TaskGroup& group) { return group.key == call.key; });
    call.group = static_cast<int>(it - list_.groups.begin());
    if (it == list_.groups.end()) list_.groups.push_back({call.key, {}});
    list_.groups[static_cast<size_t>(call.group)].calls.push_back(
        static_cast<int>(list_.calls.size()));
  }

  const Graph& graph_;
  const std::vector<bool> non_negative_;
  TaskList list_;
  std::map<ValueId, int> constant_of_value_;
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

int64_t bytes_moved(const Graph& graph, const TaskCall& call) {
  std::set<ValueId> inside, seen;
  int64_t bytes = 0;
  const auto count = [&](ValueId id) {
    if (id == kNoValue || inside.contains(id) || !seen.insert(id).second) return;
    bytes += num_elements(graph.value(id).shape) * dtype_bytes(graph.value(id).dtype);
  };
  for (const int index : call.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(index)];
    for (const ValueId in : node.inputs) count(in);
    if (index == call.nodes.back()) {
      for (const ValueId out : node.outputs) count(out);
    }
    inside.insert(node.outputs.begin(), node.outputs.end());
  }
  return bytes;
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
