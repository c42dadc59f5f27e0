#include "hone/graph/ops/taken_branch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/loop_builder.h"

namespace hone::graph {
namespace {

// A result of the node: that of either branch, in the largest shape of both.
struct Chosen {
  DType dtype = DType::kF32;
  Shape shape;
  bool varies = false;  // the branches have different shapes, or data decides theirs
  std::vector<std::optional<int64_t>> known;  // by dimension, the extent that both branches have
};

// One branch, built apart.
class Branch {
 public:
  Branch(ExpandContext& c, const SubgraphBody& body) : loop_(c, 1), outputs_(body.outputs.size()) {
    Result<std::vector<ValueId>> built = loop_.inline_body(body, {});
    fault_ = built.status();
    if (built.ok()) outputs_ = *std::move(built);
  }

  [[nodiscard]] const Status& fault() const { return fault_; }
  [[nodiscard]] const Value& output(size_t i) { return loop_.body().graph().value(outputs_[i]); }
  // Returns an extent of an output if it does not depend on data.
  [[nodiscard]] std::optional<int64_t> extent(size_t i, size_t d) {
    const Value& value = output(i);
    if (value.extents == kNoValue) return value.shape[d];
    return known_element(loop_.body().graph(), loop_.body().nodes(),
                         {value.extents, static_cast<int64_t>(d)});
  }

  // Adds the loop, which writes the results over these values if `go` is true.
  Result<std::vector<ValueId>> finish(ValueId go, const std::vector<Chosen>& results,
                                      const std::vector<ValueId>& into) {
    ExpandContext& body = loop_.body();
    std::vector<ValueId> next;
    for (const ValueId value : into) loop_.take(value);
    for (size_t i = 0; i < results.size(); ++i) {
      next.push_back(grown(body, outputs_[i], results[i].shape));
      if (results[i].varies) next.push_back(actual_extents(body, outputs_[i]));
    }
    HONE_ASSIGN_OR_RETURN(LoopResults made,
                          loop_.finish({.holds_results = false}, go, body.scalar(DType::kBool, 0),
                                       std::move(next), {}));
    return std::move(made.carried);
  }

 private:
  LoopBuilder loop_;
  std::vector<ValueId> outputs_;
  Status fault_;
};

Result<std::vector<Chosen>> join_results(const ExpandContext& c, Branch* a, Branch* b) {
  std::vector<Chosen> results;
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    const Value& x = (a != nullptr ? a : b)->output(i);
    const Value& y = (b != nullptr ? b : a)->output(i);
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size()) {
      return c.unsupported("results {} {} and {} {}, of which the condition chooses",
                           dtype_name(x.dtype), to_string(x.shape), dtype_name(y.dtype),
                           to_string(y.shape));
    }
    Chosen result{x.dtype, x.shape};
    for (size_t d = 0; d < x.shape.size(); ++d) {
      result.shape[d] = std::max(x.shape[d], y.shape[d]);
      const std::optional<int64_t> known = (a != nullptr ? a : b)->extent(i, d);
      result.known.push_back(known == (b != nullptr ? b : a)->extent(i, d) ? known : std::nullopt);
    }
    result.varies = x.shape != y.shape || x.extents != kNoValue || y.extents != kNoValue;
    if (num_elements(result.shape) == 0)
      return c.unsupported("a result {} without elements, of which the condition chooses",
                           to_string(result.shape));
    results.push_back(std::move(result));
  }
  return results;
}

// Returns the extents of a result, of which a run computes those that are not known.
ValueId extents_of(ExpandContext& c, const Chosen& result, ValueId computed) {
  std::vector<ExtentPart> parts;
  for (size_t d = 0; d < result.known.size(); ++d)
    parts.push_back(result.known[d] ? ExtentPart{kNoValue, *result.known[d]}
                                    : ExtentPart{computed, static_cast<int64_t>(d)});
  return join_extents(c, parts);
}

ValueId blank(ExpandContext& c, DType dtype, const Shape& shape) {
  return c.add("hone.Blank", {}, {{"shape", shape}, {"dtype", static_cast<int64_t>(dtype)}});
}

// The nodes so far, by their results.
std::map<ValueId, const Node*> producers_of(const ExpandContext& c) {
  std::map<ValueId, const Node*> producers;
  const auto add = [&](const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      for (const ValueId out : node.outputs) producers[out] = &node;
    }
  };
  for (const std::vector<Node>* const list : c.graph().before) add(*list);
  add(c.nodes());
  return producers;
}

// Returns the model's input that alone decides a value; nothing inside a loop's body, whose inputs
// are the loop's.
std::optional<ValueId> input_that_decides(const ExpandContext& c, ValueId value) {
  if (c.graph().is_body) return std::nullopt;
  const std::map<ValueId, const Node*> producers = producers_of(c);
  std::optional<ValueId> found;
  std::set<ValueId> seen;
  for (std::vector<ValueId> open = {value}; !open.empty();) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == kNoValue || c.constant_of(id) != nullptr || !seen.insert(id).second) continue;
    if (c.graph().is_input(id)) {
      if (found) return std::nullopt;
      found = id;
    }
    const auto producer = producers.find(id);
    if (producer == producers.end()) continue;
    open.insert(open.end(), producer->second->inputs.begin(), producer->second->inputs.end());
  }
  return found;
}

// These texts are about a branch that could not be built: a command warns with the first, and a run
// that takes the branch fails with the second.
struct FaultTexts {
  std::string warning, run;
};

FaultTexts fault_texts(const ExpandContext& c, const char* branch, const Status& fault) {
  const std::optional<ValueId> input = input_that_decides(c, c.input(0));
  std::string warned, advised;
  if (input) {
    const Value& value = c.graph().value(*input);
    const std::string option = fmt::format("--bind {}={}", value.name,
                                           num_elements(value.shape) == 1 ? "NUMBER" : "FILE.npy");
    warned = fmt::format("; input '{}' decides it: where all runs have one value, bind it ({})",
                         value.name, option);
    advised = fmt::format("; to take it, compile for shapes that fit it, with {}", option);
  }
  return {fmt::format("{}: the {} does not fit and is left out; a run that would take it fails{}: "
                      "{}",
                      name_and_type(c.node()), branch, warned, fault.message()),
          fmt::format("{}: this run would take the {}, which was left out when the model was "
                      "compiled, as it does not fit{}: {}",
                      name_and_type(c.node()), branch, advised, fault.message())};
}

Status build(ExpandContext& c, const SubgraphBody& then_body, const SubgraphBody& else_body,
             bool may_leave_out) {
  const ValueId condition = c.reshape(c.input(0), {});
  Branch first(c, then_body), second(c, else_body);
  Branch* const a = first.fault().ok() ? &first : nullptr;
  Branch* const b = second.fault().ok() ? &second : nullptr;
  if ((a == nullptr && b == nullptr) || (a == nullptr && !may_leave_out)) return first.fault();
  if (b == nullptr && !may_leave_out) return second.fault();
  HONE_ASSIGN_OR_RETURN(const std::vector<Chosen> results, join_results(c, a, b));
  std::vector<ValueId> values;
  for (const Chosen& result : results) {
    values.push_back(blank(c, result.dtype, result.shape));
    if (result.varies) values.push_back(blank(c, DType::kI64, {std::ssize(result.shape)}));
  }
  const ValueId otherwise = c.add("Not", {condition});
  const auto add = [&](Branch* branch, ValueId go, const char* name,
                       const Status& fault) -> Status {
    if (branch == nullptr) {
      FaultTexts texts = fault_texts(c, name, fault);
      c.graph().warnings.push_back(std::move(texts.warning));
      HONE_ASSIGN_OR_RETURN(
          values, LoopBuilder::add_fault(
                      c, go, {.beyond = std::move(texts.run), .holds_results = false}, values));
    } else {
      HONE_ASSIGN_OR_RETURN(values, branch->finish(go, results, values));
    }
    return ok_status();
  };
  HONE_RETURN_IF_ERROR(add(a, condition, "then_branch", first.fault()));
  HONE_RETURN_IF_ERROR(add(b, otherwise, "else_branch", second.fault()));
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    ValueId value = c.add("hone.Hold", {values[next++]});
    if (results[i].varies) {
      const ValueId computed = c.add("hone.Hold", {values[next++]});
      value = with_extents(c, value, extents_of(c, results[i], computed));
    }
    c.result(i, value);
  }
  return c.status();
}

}  // namespace

ValueId grown(ExpandContext& c, ValueId x, const Shape& shape) {
  if (c.shape_of(x) == shape) return without_extents(c, x);
  if (num_elements(c.shape_of(x)) == 0) return uniform(c, c.dtype_of(x), shape, 0);
  std::vector<int64_t> pads(2 * shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) pads[shape.size() + d] = shape[d] - c.shape_of(x)[d];
  return c.add("Pad", {without_extents(c, x), c.integers(pads)});
}

Status expand_taken_branch(ExpandContext& c, const SubgraphBody& then_body,
                           const SubgraphBody& else_body, bool may_leave_out) {
  return LoopBuilder::build_apart(
      c, [&](ExpandContext& apart) { return build(apart, then_body, else_body, may_leave_out); });
}

double operations_of(const Graph& graph, const std::vector<Node>& nodes) {
  double operations = 0;
  for (const Node& node : nodes) {
    if (node.loop != nullptr) return HUGE_VAL;
    if (node.op->kind == Kind::kView) continue;
    double elements = 0;
    for (const ValueId out : node.outputs) {
      if (out != kNoValue) elements += static_cast<double>(num_elements(graph.value(out).shape));
    }
    const auto read = [&](size_t i) {
      return node.has_input(i)
                 ? static_cast<double>(num_elements(graph.value(node.inputs[i]).shape))
                 : 0.0;
    };
    if (node.op->kind == Kind::kContraction && node.has_input(1)) {
      // Of a product, each element of the second operand meets rows or places of the result.
      const Shape& weight = graph.value(node.inputs[1]).shape;
      const double columns = weight.empty() ? 1.0
                             : node.type == "Conv"
                                 ? static_cast<double>(std::max<int64_t>(weight[0], 1))
                                 : static_cast<double>(std::max<int64_t>(weight.back(), 1));
      operations += 2 * elements * read(1) / columns;
    } else {
      operations += std::max(elements, read(0));
    }
  }
  return operations;
}

}  // namespace hone::graph
