#include "hone/graph/evaluate.h"

#include <algorithm>

#include "hone/graph/emit.h"
#include "hone/ir/interpreter.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxOperations = 100'000'000;  // a second or two
constexpr int64_t kMaxElementsInAll = 1 << 25;

}  // namespace

LoneNode isolate(const Graph& graph, const Node& node) {
  LoneNode alone;
  alone.graph.file = graph.file;
  alone.graph.opset = graph.opset;
  Node copy = node;
  const auto take = [&](ValueId& id, bool operand) {
    if (id == kNoValue) return;
    const Value& value = graph.value(id);
    alone.originals.push_back(id);
    id = operand && value.constant ? alone.graph.add_constant(value.name, *value.constant)
                                   : alone.graph.add_value(value.name, value.dtype, value.shape);
  };
  for (ValueId& in : copy.inputs) take(in, true);
  for (ValueId& out : copy.outputs) take(out, false);
  alone.graph.nodes.push_back(std::move(copy));
  return alone;
}

Result<std::vector<Tensor>> evaluate_node(const Graph& graph, const Node& node) {
  const Graph alone = isolate(graph, node).graph;
  for (const ValueId in : alone.nodes[0].inputs) {
    HONE_ASSERT(in == kNoValue || alone.value(in).constant.has_value(),
                "only constants are evaluated");
  }
  const std::vector<bool> unknown(alone.values.size(), false);
  HONE_ASSIGN_OR_RETURN(const Emitted emitted, EmitContext(alone, {0}, unknown).run());
  const ir::Program program = compute::naive_program(emitted.dag);
  int64_t elements = 0;
  for (const ir::Param& param : program.params) elements += num_elements(param.buffer->shape);
  if (elements > kMaxElementsInAll)
    return error(Code::kTimeout, "{}: {} elements to compute in advance", node.name, elements);
  std::vector<Tensor> args;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Buffer& buffer = *program.params[i].buffer;
    if (i < emitted.arguments.size() && program.params[i].role != ir::Role::kOutput) {
      const EmittedArgument& argument = emitted.arguments[i];
      args.push_back(argument.constant ? *argument.constant
                                       : *alone.value(argument.value).constant);
    } else {
      // A result has the type of its value, which may be a small one.
      const bool result = i < emitted.arguments.size() && !emitted.arguments[i].constant;
      args.emplace_back(result ? alone.value(emitted.arguments[i].value).dtype : buffer.dtype,
                        buffer.shape);
    }
  }
  const int64_t left = kMaxFoldedOperations - graph.folded_operations;
  if (left <= 0)
    return error(Code::kTimeout, "{}: folding constants has reached its bound", node.name);
  int64_t done = 0;
  const Status status = ir::run(
      program, args, {.max_operations = std::min(kMaxOperations, left), .operations = &done});
  graph.folded_operations += done;
  HONE_RETURN_IF_ERROR(status);
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
