#include "hone/graph/reference_testing.h"

#include <cstring>

#include "hone/compute/affine.h"
#include "hone/graph/loop_body.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/size_values.h"
#include "hone/ir/interpreter.h"

namespace hone::graph {
namespace {

class Runner {
 public:
  Runner(const TaskList& tasks, const MemoryPlan& plan, const std::vector<Tensor>& inputs)
      : tasks_(tasks), plan_(plan), inputs_(inputs), arena_(DType::kU8, {plan.arena_bytes}) {
    // Garbage, so that a read before a write shows; zeros where borders are.
    if (plan.arena_bytes > 0)
      std::memset(arena_.data(), 0xff, static_cast<size_t>(plan.arena_bytes));
    for (const auto& [offset, bytes] : plan.zeroed)
      std::memset(at(offset), 0, static_cast<size_t>(bytes));
    for (const TensorInfo& output : tasks.outputs)
      outputs_.emplace_back(output.dtype, output.shape);
    if (tasks.sizes < 0) return;
    const std::vector<int64_t> sizes = sizes_of(tasks.varying, largest_symbols(tasks.varying));
    const Tensor* given = inputs.size() > tasks.inputs.size() ? &inputs.back() : nullptr;
    std::memcpy(at(plan.offsets[static_cast<size_t>(tasks.sizes)]),
                given != nullptr ? given->data() : sizes.data(), sizes.size() * sizeof(int64_t));
  }

  Result<std::vector<Tensor>> run() {
    HONE_RETURN_IF_ERROR(run_calls(0, std::ssize(tasks_.calls), 0, tasks_.loops.size()));
    for (size_t i = 0; i < outputs_.size(); ++i) cut_to_extents(i);
    return std::move(outputs_);
  }

 private:
  char* at(int64_t offset) { return static_cast<char*>(arena_.data()) + offset; }

  char* memory(const Argument& argument) {
    const auto index = static_cast<size_t>(argument.index);
    switch (argument.kind) {
      case Argument::Kind::kInput:
        return static_cast<char*>(const_cast<void*>(inputs_[index].data()));
      case Argument::Kind::kConstant:
        return static_cast<char*>(const_cast<void*>(tasks_.constants[index].data()));
      case Argument::Kind::kOutput: return static_cast<char*>(outputs_[index].data());
      case Argument::Kind::kArena: return at(plan_.offsets[index]);
    }
    HONE_ASSERT(false, "an argument is of one of four kinds");
  }

  char* buffer(int index) { return at(plan_.offsets[static_cast<size_t>(index)]); }
  int64_t integer(int index) {
    int64_t value = 0;
    std::memcpy(&value, buffer(index), sizeof value);
    return value;
  }
  void put(int index, int64_t value) {
    if (index >= 0 && plan_.offsets[static_cast<size_t>(index)] >= 0)
      std::memcpy(buffer(index), &value, sizeof value);
  }

  // These calls, with these loops among them.
  Status run_calls(int64_t first, int64_t end, size_t loop, size_t end_loop) {
    for (; loop < end_loop; loop += 1 + static_cast<size_t>(tasks_.loops[loop].nested)) {
      for (; first < tasks_.loops[loop].first_call; ++first)
        HONE_RETURN_IF_ERROR(run_call(tasks_.calls[static_cast<size_t>(first)]));
      HONE_RETURN_IF_ERROR(repeat(loop));
      first = tasks_.loops[loop].end_call;
    }
    for (; first < end; ++first)
      HONE_RETURN_IF_ERROR(run_call(tasks_.calls[static_cast<size_t>(first)]));
    return ok_status();
  }

  Status repeat(size_t index) {
    const TaskLoop& loop = tasks_.loops[index];
    int64_t turn = 0;
    for (;; ++turn) {
      if (loop.condition >= 0 && *buffer(loop.condition) == 0) break;
      if (loop.limit >= 0 && turn >= integer(loop.limit)) break;
      if (turn >= loop.most && !loop.beyond.empty()) {
        const auto* shapes =
            loop.rank > 0 ? reinterpret_cast<const int64_t*>(buffer(loop.shapes)) : nullptr;
        return invalid("{}", fault_message(loop.beyond, {shapes, size_t{2} * loop.rank}));
      }
      if (turn >= loop.most) break;
      put(loop.turn, turn);
      HONE_RETURN_IF_ERROR(run_calls(loop.first_call, loop.end_call, index + 1,
                                     index + 1 + static_cast<size_t>(loop.nested)));
      for (const LoopCopy& copy : loop.copies)
        std::memcpy(buffer(copy.to) + copy.start + turn * copy.stride, buffer(copy.from),
                    static_cast<size_t>(copy.bytes));
    }
    put(loop.turns, turn);
    return ok_status();
  }

  // Such an output is dense from its start.
  void cut_to_extents(size_t output) {
    const int buffer = tasks_.outputs[output].extents;
    if (buffer < 0) return;
    Tensor& whole = outputs_[output];
    const auto* extents =
        reinterpret_cast<const int64_t*>(at(plan_.offsets[static_cast<size_t>(buffer)]));
    Tensor cut(whole.dtype(), Shape(extents, extents + whole.shape().size()));
    HONE_ASSERT(cut.bytes() <= whole.bytes(), "extents are at most the shape");
    std::memcpy(cut.data(), whole.data(), static_cast<size_t>(cut.bytes()));
    whole = cut;
  }

  Status run_call(const TaskCall& call) {
    const ir::Program program = compute::naive_program(call.dag);
    const bool kept = writes_anywhere(call.dag);
    std::vector<Tensor> args;
    for (size_t i = 0; i < program.params.size(); ++i) {
      const ir::Buffer& buffer = *program.params[i].buffer;
      args.emplace_back(buffer.dtype, buffer.shape);
      // An extern stage may leave elements as they are: windows of other values.
      const bool read = program.params[i].role == ir::Role::kInput ||
                        (program.params[i].role == ir::Role::kOutput && kept) ||
                        program.params[i].role == ir::Role::kConstant;
      if (read)
        std::memcpy(args[i].data(), memory(call.arguments[i]),
                    static_cast<size_t>(args[i].bytes()));
    }
    HONE_RETURN_IF_ERROR(ir::run(program, args, {.keep_outputs = kept}));
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (program.params[i].role == ir::Role::kOutput) store(call, i, args[i]);
    }
    return ok_status();
  }

  static bool writes_anywhere(const compute::Dag& dag) { return dag.stages.back().is_extern(); }

  // Copies what the task wrote, and nothing else: borders and other windows stay as they are.
  void store(const TaskCall& call, size_t param, const Tensor& result) {
    const ir::BufferPtr& buffer = call.dag.params[param].buffer;
    const auto width = static_cast<size_t>(dtype_bytes(result.dtype()));
    char* target = memory(call.arguments[param]);
    const auto* source = static_cast<const char*>(result.data());
    if (writes_anywhere(call.dag)) {
      std::memcpy(target, source, static_cast<size_t>(result.bytes()));
      return;
    }
    for (const int s : call.dag.writers(buffer)) {
      const compute::Stage& stage = call.dag.stages[static_cast<size_t>(s)];
      for (const compute::Output& output : stage.outputs) {
        if (output.buffer != buffer) continue;
        const std::vector<compute::AffineRow> rows = compute::write_rows(stage, output);
        Shape point(stage.axes.size(), 0);
        for (bool more = true; more;) {
          int64_t flat = 0;
          for (size_t d = 0; d < rows.size(); ++d) {
            int64_t at = rows[d].constant;
            for (size_t a = 0; a < point.size(); ++a) at += rows[d].coef[a] * point[a];
            flat = flat * buffer->shape[d] + at;
          }
          std::memcpy(target + static_cast<size_t>(flat) * width,
                      source + static_cast<size_t>(flat) * width, width);
          more = false;
          for (size_t d = point.size(); d-- > 0 && !more;) {
            more = ++point[d] < stage.axes[d].extent;
            if (!more) point[d] = 0;
          }
        }
      }
    }
  }

  const TaskList& tasks_;
  const MemoryPlan& plan_;
  const std::vector<Tensor>& inputs_;
  Tensor arena_;
  std::vector<Tensor> outputs_;
};

}  // namespace

Result<std::vector<Tensor>> run_reference(const TaskList& tasks, const MemoryPlan& plan,
                                          const std::vector<Tensor>& inputs) {
  const size_t sizes = tasks.sizes >= 0 && inputs.size() > tasks.inputs.size() ? 1 : 0;
  if (inputs.size() != tasks.inputs.size() + sizes) {
    return invalid("{} inputs, expected {}", inputs.size(), tasks.inputs.size());
  }
  for (size_t i = 0; i < tasks.inputs.size(); ++i) {
    const TensorInfo& info = tasks.inputs[i];
    if (inputs[i].dtype() != info.dtype || inputs[i].shape() != info.shape) {
      return invalid("input '{}' is {} {}, expected {} {}", info.name,
                     dtype_name(inputs[i].dtype()), to_string(inputs[i].shape()),
                     dtype_name(info.dtype), to_string(info.shape));
    }
  }
  return Runner(tasks, plan, inputs).run();
}

Result<std::vector<Tensor>> run_reference(const Graph& graph, const std::vector<Tensor>& inputs,
                                          const std::vector<std::string>& skip_passes) {
  Graph copy = graph;
  HONE_RETURN_IF_ERROR(optimize(copy, {.skip = skip_passes}));
  HONE_ASSIGN_OR_RETURN(const TaskList tasks, extract_tasks(copy));
  const MemoryPlan plan = plan_memory(tasks);
  HONE_RETURN_IF_ERROR(verify(plan, tasks));
  return run_reference(tasks, plan, inputs);
}

}  // namespace hone::graph
