#include "hone/graph/tasks.h"

#include <algorithm>
#include <map>
#include <set>

#include "hone/base/hash.h"
#include "hone/compute/collapse_axes.h"
#include "hone/compute/join_reduce_axes.h"
#include "hone/compute/kernel_params.h"
#include "hone/graph/all_finite.h"
#include "hone/graph/emit.h"
#include "hone/graph/loop_body.h"
#include "hone/graph/unsupported_list.h"

namespace hone::graph {
namespace {

uint64_t tensor_hash(const Tensor& tensor) {
  uint64_t hash = static_cast<uint64_t>(tensor.dtype());
  for (const int64_t extent : tensor.shape())
    hash = hash_combine(hash, static_cast<uint64_t>(extent));
  return hash_bytes(tensor.data(), static_cast<size_t>(tensor.bytes()), hash);
}

// The list that is made, with what finds equal constants and tasks. Loops add to it, too.
class ListMaker {
 public:
  TaskList list;
  UnsupportedList unsupported;

  Argument constant(const Tensor& tensor) {
    const uint64_t hash = tensor_hash(tensor);
    const auto [it, fresh] =
        constant_of_hash_.emplace(hash, static_cast<int>(list.constants.size()));
    if (fresh) {
      list.constants.push_back(tensor);
      list.constant_hashes.push_back(hash);
    }
    return {Argument::Kind::kConstant, it->second};
  }

  void add(TaskCall call) {
    const auto [it, fresh] = group_of_key_.emplace(call.key, static_cast<int>(list.groups.size()));
    call.group = it->second;
    if (fresh) {
      list.groups.push_back({call.key, {}});
    } else {
      const TaskGroup& group = list.groups[static_cast<size_t>(call.group)];
      order_arguments(call, list.calls[static_cast<size_t>(group.calls.front())].dag);
    }
    list.groups[static_cast<size_t>(call.group)].calls.push_back(
        static_cast<int>(list.calls.size()));
    list.calls.push_back(std::move(call));
  }

  // The calls of a group run the same code, so that they have to know the same.
  void keep_common_zeros() {
    for (const TaskGroup& group : list.groups) keep_common_zeros(group);
  }

  // A buffer of the arena without a border.
  int add_buffer(DType dtype, Shape shape) {
    list.buffers.push_back({.dtype = dtype, .shape = std::move(shape)});
    return static_cast<int>(list.buffers.size()) - 1;
  }

  // Begins or ends a loop.
  int add_boundary() {
    list.boundaries.push_back(static_cast<int>(list.calls.size()));
    return static_cast<int>(list.boundaries.size()) - 1;
  }

 private:
  // Orders the arguments as the kernel of the group takes them.
  static void order_arguments(TaskCall& call, const compute::Dag& kernel) {
    const std::vector<size_t> order = compute::order_like(call.dag, kernel);
    call.dag.params = compute::in_order(call.dag.params, order);
    call.arguments = compute::in_order(call.arguments, order);
    const auto moved = [&](size_t param) {
      return static_cast<size_t>(std::ranges::find(order, param) - order.begin());
    };
    for (IndexParam& one : call.indices)
      one.indices = moved(one.indices), one.data = moved(one.data);
    for (PartsOfParam& one : call.parts) one.param = moved(one.param);
  }

  void keep_common_zeros(const TaskGroup& group) {
    const auto params = [&](int call) -> std::vector<ir::Param>& {
      return list.calls[static_cast<size_t>(call)].dag.params;
    };
    for (size_t i = 0; i < params(group.calls[0]).size(); ++i) {
      const Shape& zeros = params(group.calls[0])[i].zeros;
      if (std::ranges::all_of(group.calls,
                              [&](int call) { return params(call)[i].zeros == zeros; }))
        continue;
      for (const int call : group.calls) params(call)[i].zeros.clear();
    }
  }

  std::map<uint64_t, int> constant_of_hash_, group_of_key_;
};

// The loop whose body a graph is.
struct Around {
  std::vector<Argument> inputs;  // places of the graph's inputs
  int loop = -1;                 // as in TaskCall
  int node = -1;                 // the outermost loop's, in the whole graph
  double runs = 1;
};

class Extractor {
 public:
  Extractor(const Graph& graph, const TaskOptions& options, ListMaker& made, Around around = {})
      : graph_(graph),
        options_(options),
        made_(made),
        around_(std::move(around)),
        first_buffer_(static_cast<int>(made.list.buffers.size())),
        non_negative_(non_negative_values(graph)),
        uses_(graph) {
    for (Buffer buffer : graph.buffers) {
      // Inputs and outputs of a body lie in the arena, too.
      if (is_body()) buffer.kind = Buffer::Kind::kArena, buffer.index = 0;
      made.list.buffers.push_back(std::move(buffer));
    }
  }

  void add_interface() {
    TaskList& list = made_.list;
    list.varying = graph_.varying;
    for (const ValueId id : graph_.inputs) {
      if (id == graph_.varying.sizes)
        list.sizes = graph_.value(id).storage.buffer;
      else
        list.inputs.push_back(info(graph_.value(id).name, id));
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      list.outputs.push_back(info(graph_.output_names[i], graph_.outputs[i]));
    }
    find_extents();
    list.decided = find_decided_sizes(graph_);
  }

  Status add_calls() {
    FuseOptions groups{.max_followers = options_.max_followers};
    if (options_.join) {
      groups.join = [&](const std::vector<int>& first, const std::vector<int>& second) {
        std::vector<int> both = first;
        both.insert(both.end(), second.begin(), second.end());
        const Result<Emitted>&joined = emit_once(both), &a = emit_once(first),
              &b = emit_once(second);
        return joined.ok() && a.ok() && b.ok() && options_.join(joined->dag, a->dag, b->dag);
      };
    }
    for (const std::vector<int>& group : fuse(graph_, groups)) {
      const Node& node = graph_.nodes[static_cast<size_t>(group.front())];
      if (node.loop != nullptr) {
        HONE_RETURN_IF_ERROR(add_loop(node, group.front()));
      } else if (node.type == "hone.Blank" || (node.type == "hone.Hold" && can_share(node))) {
        continue;
      } else if (!makes_nothing(group)) {
        HONE_RETURN_IF_ERROR(add_call(group));
      }
    }
    return ok_status();
  }

 private:
  [[nodiscard]] bool is_body() const { return around_.loop >= 0; }

  Status add_call(const std::vector<int>& group) {
    Result<Emitted>& made = emit_once(group);
    HONE_RETURN_IF_ERROR(made_.unsupported.add(made.status()));
    if (!made.ok()) return ok_status();
    Emitted& emitted = *made;
    TaskCall call;
    call.key = compute::task_key(emitted.dag);
    call.name = graph_.nodes[static_cast<size_t>(group.front())].name;
    call.dag = std::move(emitted.dag);
    call.nodes = is_body() ? std::vector<int>{around_.node} : group;
    call.loop = around_.loop;
    call.runs = around_.runs;
    for (const EmittedArgument& argument : emitted.arguments)
      call.arguments.push_back(place(argument));
    for (const int node : group) add_reads(graph_.nodes[static_cast<size_t>(node)], emitted, call);
    made_.add(std::move(call));
    return ok_status();
  }

  // Adds what is known of the elements that a node reads.
  void add_reads(const Node& node, const Emitted& emitted, TaskCall& call) const {
    const size_t number = emitted.arguments.size();
    const auto param_of = [&](size_t operand) {
      const auto at =
          std::ranges::find(emitted.arguments, node.inputs[operand], &EmittedArgument::value);
      return static_cast<size_t>(at - emitted.arguments.begin());
    };
    if (node.run_places) {
      const size_t data = param_of(0), indices = param_of(1);
      if (std::max(data, indices) < number)
        call.indices.push_back({indices, data, *node.run_places});
    }
    if (node.run_parts.empty() || param_of(0) == number) return;
    const Value& value = graph_.value(node.inputs[0]);
    PartsOfParam read{param_of(0), {}};
    Shape shape;
    for (const int dim : order_of(value)) {
      read.parts.push_back(node.run_parts[static_cast<size_t>(dim)]);
      shape.push_back(value.shape[static_cast<size_t>(dim)]);
    }
    if (call.dag.params[read.param].buffer->shape == shape) call.parts.push_back(std::move(read));
  }

  // The place of a value that is no constant.
  Argument place_of(ValueId id) const {
    const int own = graph_.value(id).storage.buffer;
    HONE_ASSERT(own >= 0, "the value has a place");
    if (const auto same = same_place_.find(own); same != same_place_.end()) return same->second;
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(own)];
    if (buffer.kind == Buffer::Kind::kInput)
      return is_body() ? around_.inputs[static_cast<size_t>(buffer.index)]
                       : Argument{Argument::Kind::kInput, buffer.index};
    if (buffer.kind == Buffer::Kind::kOutput && !is_body())
      return {Argument::Kind::kOutput, buffer.index};
    return {Argument::Kind::kArena, first_buffer_ + own};
  }

  // The buffer of the list in which a value of the arena lies.
  int buffer_of(ValueId id) const {
    const Argument place = place_of(id);
    HONE_ASSERT(place.kind == Argument::Kind::kArena, "what loops write lies in the arena");
    return place.index;
  }

  // Returns whether the value is all of its buffer, in the order of its dimensions.
  bool fills_buffer(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.constant || value.storage.buffer < 0) return false;
    const Storage& storage = value.storage;
    const Buffer& buffer = graph_.buffers[static_cast<size_t>(storage.buffer)];
    for (size_t j = 0; j < storage.order.size(); ++j) {
      if (storage.order[j] != static_cast<int>(j) || storage.offset[j] != 0 ||
          storage.step[j] != 1 || storage.extent[j] != value.shape[j])
        return false;
    }
    return !buffer.has_border() && num_elements(buffer.shape) == num_elements(value.shape);
  }

  // Returns whether only loops read the value, and none of them writes over it.
  bool is_captured_only(ValueId id) const {
    return std::ranges::all_of(uses_.readers[static_cast<size_t>(id)], [&](int reader) {
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      if (node.loop == nullptr) return false;
      const auto first = node.inputs.begin();
      const auto captured = first + 1 + static_cast<long>(node.loop->carried);
      return std::find(first, captured, id) == captured;
    });
  }

  // A hone.Hold need not copy what a loop only reads, and what it made for others where they read
  // it as it lies.
  bool can_share(const Node& hold) {
    const ValueId from = hold.inputs[0], to = hold.outputs[0];
    if (!fills_buffer(from) || !fills_buffer(to)) return false;
    const int own = graph_.value(to).storage.buffer;
    if (graph_.buffers[static_cast<size_t>(own)].kind != Buffer::Kind::kArena) return false;
    const int producer = uses_.producer[static_cast<size_t>(from)];
    const bool made_by_loop =
        producer >= 0 && graph_.nodes[static_cast<size_t>(producer)].loop != nullptr;
    // A loop writes over the results of others that it takes, so that each has one reader.
    if (!is_captured_only(to) &&
        !(made_by_loop && uses_.readers[static_cast<size_t>(from)].size() == 1 &&
          !is_read_by_loop(to)))
      return false;
    same_place_[own] = place_of(from);
    return true;
  }

  bool is_read_by_loop(ValueId id) const {
    return std::ranges::any_of(uses_.readers[static_cast<size_t>(id)], [&](int reader) {
      return graph_.nodes[static_cast<size_t>(reader)].loop != nullptr;
    });
  }

  // The body's calls, and what the runtime does around them.
  Status add_loop(const Node& node, int index) {
    const LoopBody& body = *node.loop;
    const auto number = made_.list.loops.size();
    TaskLoop loop{.name = node.name, .most = body.most, .beyond = body.beyond};
    Around around{.loop = static_cast<int>(number),
                  .node = is_body() ? around_.node : index,
                  .runs = around_.runs * std::max(body.expected_turns, 1.0)};
    set_operands(node, loop, around);
    set_results(node, around, loop);
    const std::vector<Argument> inputs = around.inputs;
    loop.begin = made_.add_boundary();
    loop.first_call = static_cast<int>(made_.list.calls.size());
    made_.list.loops.push_back(loop);
    Extractor inside(body.graph, options_, made_, std::move(around));
    if (body.most > 0) {
      HONE_RETURN_IF_ERROR(inside.add_calls());
      for (size_t i = 0; i < body.carried; ++i)
        loop.copies.push_back(inside.copy_of(body, i, inputs[1 + i].index));
      add_rows(node, inside, loop);
    }
    loop.end_call = static_cast<int>(made_.list.calls.size());
    loop.end = made_.add_boundary();
    loop.nested = static_cast<int>(made_.list.loops.size() - number) - 1;
    made_.list.loops[number] = std::move(loop);
    return ok_status();
  }

  void set_operands(const Node& node, TaskLoop& loop, Around& around) {
    loop.turn = made_.add_buffer(DType::kI64, {});
    around.inputs = {{Argument::Kind::kArena, loop.turn}};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      around.inputs.push_back(place_of(node.inputs[i]));
    for (const Argument& input : around.inputs) {
      if (input.kind == Argument::Kind::kArena) loop.kept.push_back(input.index);
    }
    if (node.has_input(0)) loop.limit = buffer_of(node.inputs[0]);
    if (node.has_input(0)) loop.kept.push_back(loop.limit);
    if (node.loop->conditional) loop.condition = around.inputs[1].index;
    if (!node.loop->names_shapes) return;
    const size_t shapes = node.loop->shapes_operand();
    loop.shapes = around.inputs[shapes].index;
    loop.rank = static_cast<uint32_t>(num_elements(graph_.value(node.inputs[shapes]).shape) / 2);
  }

  // A carried result lies where the operand does.
  void set_results(const Node& node, const Around& around, TaskLoop& loop) {
    const LoopBody& body = *node.loop;
    for (size_t i = 0; i < body.carried; ++i) {
      if (const ValueId out = node.outputs[i]; out != kNoValue)
        same_place_[graph_.value(out).storage.buffer] = around.inputs[1 + i];
    }
    const size_t turns = body.graph.outputs.size();
    if (turns < node.outputs.size() && node.outputs[turns] != kNoValue)
      loop.turns = buffer_of(node.outputs[turns]);
  }

  // The rows of a turn go to their places in the stacked results.
  void add_rows(const Node& node, const Extractor& inside, TaskLoop& loop) const {
    const LoopBody& body = *node.loop;
    for (size_t i = 0; i < body.rows(); ++i) {
      const size_t at = body.carried + i;
      if (at >= node.outputs.size() || node.outputs[at] == kNoValue) continue;
      LoopCopy copy = inside.copy_of(body, at, buffer_of(node.outputs[at]));
      copy.stride = body.reversed[i] ? -copy.bytes : copy.bytes;
      copy.start = body.reversed[i] ? (body.most - 1) * copy.bytes : 0;
      loop.kept.push_back(copy.to);
      loop.copies.push_back(copy);
    }
  }

  // The copy of output i of this body.
  LoopCopy copy_of(const LoopBody& body, size_t i, int to) const {
    const ValueId output = graph_.outputs[i];
    const Value& value = graph_.value(output);
    return {.from = buffer_of(output),
            .to = to,
            .bytes = num_elements(value.shape) * dtype_bytes(value.dtype),
            .shape = value.shape,
            .parts = body.parts.empty() ? ShapeParts() : body.parts[i]};
  }

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
        made_.list.outputs[i].extents = graph_.value(it->second->outputs[1]).storage.buffer;
    }
  }

  TensorInfo info(const std::string& name, ValueId id) const {
    return {.name = name, .dtype = graph_.value(id).dtype, .shape = graph_.value(id).shape};
  }

  Argument place(const EmittedArgument& argument) {
    if (argument.constant) return made_.constant(*argument.constant);
    const Value& value = graph_.value(argument.value);
    if (value.constant) {
      const auto [it, fresh] = constant_of_value_.emplace(argument.value, 0);
      if (fresh) it->second = made_.constant(*value.constant).index;
      return {Argument::Kind::kConstant, it->second};
    }
    return place_of(argument.value);
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

  const Graph& graph_;
  const TaskOptions& options_;
  ListMaker& made_;
  const Around around_;
  const int first_buffer_;  // of the list
  const std::vector<bool> non_negative_;
  const Uses uses_;
  std::map<int, Argument> same_place_;  // by this graph's buffers: a place instead of its own
  std::map<ValueId, int> constant_of_value_;
  std::map<std::vector<int>, Result<Emitted>> emitted_;
  std::map<ValueId, bool> finite_;  // constants that were looked at
};

}  // namespace

Result<TaskList> extract_tasks(const Graph& graph, const TaskOptions& options) {
  ListMaker made;
  Extractor extractor(graph, options, made);
  extractor.add_interface();
  HONE_RETURN_IF_ERROR(extractor.add_calls());
  made.keep_common_zeros();
  HONE_RETURN_IF_ERROR(made.unsupported.all(graph.file));
  return std::move(made.list);
}

int TaskList::boundaries_before(int call) const {
  return static_cast<int>(std::upper_bound(boundaries.begin(), boundaries.end(), call) -
                          boundaries.begin());
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
  for (const TaskCall& call : tasks.calls) total += call.runs * compute::flops(call.dag);
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
