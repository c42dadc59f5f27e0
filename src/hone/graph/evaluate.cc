#include "hone/graph/evaluate.h"

#include "hone/graph/emit.h"
#include "hone/ir/interpreter.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxOperations = 100'000'000;  // a second or two

}  // namespace

Result<std::vector<Tensor>> evaluate_node(const Graph& graph, const Node& node) {
  // A graph of this node alone, without memory orders or storage.
  Graph alone;
  alone.file = graph.file;
  alone.opset = graph.opset;
  alone.values = {};
  Node copy = node;
  for (ValueId& in : copy.inputs) {
    if (in == kNoValue) continue;
    const Value& value = graph.value(in);
    HONE_ASSERT(value.constant.has_value(), "only constants are evaluated");
    in = alone.add_constant(value.name, *value.constant);
  }
  for (ValueId& out : copy.outputs) {
    if (out != kNoValue)
      out = alone.add_value(graph.value(out).name, graph.value(out).dtype, graph.value(out).shape);
  }
  alone.nodes.push_back(std::move(copy));
  const std::vector<bool> unknown(alone.values.size(), false);
  HONE_ASSIGN_OR_RETURN(const Emitted emitted, EmitContext(alone, {0}, unknown).run());
  const ir::Program program = compute::naive_program(emitted.dag);
  std::vector<Tensor> args;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Buffer& buffer = *program.params[i].buffer;
    if (i < emitted.arguments.size() && program.params[i].role != ir::Role::kOutput) {
      const EmittedArgument& argument = emitted.arguments[i];
      args.push_back(argument.constant ? *argument.constant
                                       : *alone.value(argument.value).constant);
    } else {
      args.emplace_back(buffer.dtype, buffer.shape);
    }
  }
  HONE_RETURN_IF_ERROR(ir::run(program, args, {.max_operations = kMaxOperations}));
  std::vector<Tensor> results;
  for (const ValueId out : alone.nodes[0].outputs) {
    results.emplace_back();
    for (size_t i = 0; out != kNoValue && i < emitted.arguments.size(); ++i) {
      if (!emitted.arguments[i].constant && emitted.arguments[i].value == out)
        results.back() = args[i];
    }
  }
  return results;
}

}  // namespace hone::graph
