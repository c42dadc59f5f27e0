#include "hone/graph/ops/loop_builder.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/sequence.h"

namespace hone::graph {
namespace {

// What a graph and that of a loop inside it may do together.
void share_budget(const Graph& from, Graph& to) {
  to.made_bytes = from.made_bytes;
  to.made_numbers = from.made_numbers;
  to.weight_bytes = from.weight_bytes;
  to.folded_bytes = from.folded_bytes;
  to.folded_operations = from.folded_operations;
}

}  // namespace

LoopBuilder::LoopBuilder(ExpandContext& around, int64_t most)
    : around_(around),
      loop_(std::make_shared<LoopBody>()),
      node_(around.node()),
      inner_(loop_->graph, node_, nodes_) {
  const Graph& outer = around.graph();
  Graph& graph = loop_->graph;
  graph.name = node_.name;
  graph.file = outer.file;
  graph.opset = outer.opset;
  graph.rebatch = outer.rebatch;
  graph.max_turns = outer.max_turns;
  graph.repeats_steps = outer.repeats_steps;
  graph.keeps_loops = outer.keeps_loops;
  graph.is_body = true;
  graph.around = {&outer, &around.nodes(), {}};
  share_budget(outer, graph);
  loop_->most = most;
  turn_ = graph.add_value(node_.name + ".turn", DType::kI64, {});
  Tensor last(DType::kI64, {});
  last.as<int64_t>()[0] = std::max<int64_t>(most - 1, 0);
  graph.value(turn_).upper = std::move(last);
  std::fill(node_.inputs.begin(), node_.inputs.end(), kNoValue);
  for (const auto& [condition, value] : outer.used_if) {
    graph.used_if.emplace_back(capture_if_read(condition), value);
  }
}

// A value of the body like one of the enclosing graph. Constants are the same in both.
ValueId LoopBuilder::inner_value(ValueId outer) {
  const Value& value = around_.graph().value(outer);
  Graph& graph = loop_->graph;
  if (value.constant) {
    const ValueId constant = graph.add_constant(value.name, *value.constant);
    loop_->captured_constants[constant] = outer;
    return constant;
  }
  const ValueId inner = graph.add_value(value.name, value.dtype, value.shape);
  graph.value(inner).upper = value.upper;
  graph.value(inner).is_upper = value.is_upper;
  return inner;
}

ValueId LoopBuilder::carry(ValueId initial) {
  const Value& value = around_.graph().value(initial);
  HONE_ASSERT(num_elements(value.shape) > 0, "a value without elements is a constant");
  const ValueId inner = loop_->graph.add_value(value.name, value.dtype, value.shape);
  carried_.push_back({initial, inner});
  return inner;
}

void LoopBuilder::add_nodes(ExpandContext& c, std::vector<Node> nodes) {
  std::move(nodes.begin(), nodes.end(), std::back_inserter(c.nodes_));
}

namespace {

constexpr const char* kNotChecked =
    "this device does not check in a run that computed places, lengths and shapes go together: "
    "where they do not, results may be wrong, and a CPU ends the run with an error";

void warn_once(Graph& graph, const char* text) {
  if (std::count(graph.warnings.begin(), graph.warnings.end(), text) == 0)
    graph.warnings.emplace_back(text);
}

}  // namespace

// It is a loop without turns, which fails where there is to be one.
Result<std::vector<ValueId>> LoopBuilder::add_fault(ExpandContext& c, ValueId fails,
                                                    const LoopEnd& end,
                                                    const std::vector<ValueId>& values) {
  if (!c.graph().repeats_steps) {
    warn_once(c.graph(), kNotChecked);
    return values;
  }
  LoopBuilder loop(c, 0);
  std::vector<ValueId> same;
  for (const ValueId value : values)
    same.push_back(end.holds_results ? loop.carry(value) : loop.take(value));
  HONE_ASSIGN_OR_RETURN(
      LoopResults made,
      loop.finish(end, fails, loop.body().scalar(DType::kBool, 0), std::move(same), {}));
  return std::move(made.carried);
}

ValueId LoopBuilder::take(ValueId initial) {
  const ValueId inner = carry(initial);
  carried_.back().taken = true;
  return inner;
}

ValueId LoopBuilder::capture_if_read(ValueId outer) {
  const size_t known = captured_.size();
  const ValueId inner = capture(outer);
  for (size_t i = known; i < captured_.size(); ++i)
    captured_[i].if_read |= captured_[i].outer == outer;
  return inner;
}

void LoopBuilder::capture_slice(ValueId outer, ValueId inner) {
  const std::optional<RunSlice> slice = around_.graph().value(outer).slice;
  if (!slice) return;
  RunSlice captured = *slice;
  captured.from = capture_if_read(slice->from);
  captured.begin = capture_if_read(slice->begin);
  loop_->graph.value(inner).slice = captured;
}

ValueId LoopBuilder::capture(ValueId outer) {
  const auto known = std::find_if(captured_.begin(), captured_.end(),
                                  [&](const Pair& pair) { return pair.outer == outer; });
  if (known != captured_.end()) return known->inner;
  const ValueId extents = around_.extents_of(outer);
  const ValueId inner = inner_value(outer);
  loop_->graph.around->captured[inner] = outer;
  // A body that reads what a Slice was taken from need not read the Slice.
  captured_.push_back({outer, inner, false, around_.graph().value(outer).slice.has_value()});
  if (extents != kNoValue) {
    const ValueId inner_extents = capture(extents);
    inner_.set_extents(inner, inner_extents);
  }
  capture_slice(outer, inner);
  return inner;
}

std::optional<Aggregate> LoopBuilder::capture_parts(Aggregate list) {
  list.stacked = rows_of_parts(around_, list);
  if (list.stacked != kNoValue) {
    list.parts.clear();
    list.stacked = capture(list.stacked);
  }
  for (ValueId& part : list.parts) {
    if (aggregate_of(part) != nullptr) return std::nullopt;
    part = capture(part);
  }
  return list;
}

Result<std::vector<ValueId>> LoopBuilder::inline_body(const SubgraphBody& body,
                                                      const std::vector<ValueId>& arguments) {
  const auto refused = [&] {
    return around_.unsupported("a loop that is not unrolled, with sequences or optional values");
  };
  std::vector<std::pair<size_t, Aggregate>> lists;  // by operand
  for (const auto& [local, operand] : body.captures) {
    const ValueId outer = around_.input(operand);
    if (outer == kNoValue) continue;
    if (const Aggregate* const found = aggregate_of(outer)) {
      std::optional<Aggregate> inside = capture_parts(*found);
      if (!inside) return refused();
      lists.emplace_back(operand, *std::move(inside));
    } else {
      node_.inputs[operand] = capture(outer);
    }
  }
  const AggregateScope apart(loop_->graph);  // its values have numbers of their own
  for (auto& [operand, list] : lists)
    node_.inputs[operand] = add_aggregate(inner_, std::move(list));
  std::vector<ValueId> outputs = inner_.inline_body(body, arguments);
  HONE_RETURN_IF_ERROR(inner_.status());
  if (std::any_of(outputs.begin(), outputs.end(),
                  [](ValueId id) { return aggregate_of(id) != nullptr; }))
    return refused();
  return outputs;
}

Status LoopBuilder::check_carried(const std::vector<ValueId>& next) const {
  HONE_ASSERT(next.size() == carried_.size(), "each carried value is one in the next turn, too");
  for (size_t i = 0; i < next.size(); ++i) {
    const Value& from = loop_->graph.value(carried_[i].inner);
    const Value& to = loop_->graph.value(next[i]);
    if (from.dtype == to.dtype && from.shape == to.shape && to.extents == kNoValue) continue;
    return around_.unsupported(
        "a loop that is not unrolled and whose carried value '{}' changes from {} {} to {} {}{}: "
        "expected one type and shape in all turns",
        from.name, dtype_name(from.dtype), to_string(from.shape), dtype_name(to.dtype),
        to_string(to.shape), to.extents != kNoValue ? ", of which data decides" : "");
  }
  return ok_status();
}

Status LoopBuilder::check_rows(const std::vector<LoopRow>& rows) const {
  for (const LoopRow& row : rows) {
    const Value& value = loop_->graph.value(row.value);
    if (value.extents == kNoValue && num_elements(value.shape) > 0) continue;
    return around_.unsupported(
        "a loop that is not unrolled and stacks '{}' {}, whose shape {}: expected one shape with "
        "elements in all turns",
        value.name, to_string(value.shape),
        value.extents != kNoValue ? "depends on data" : "has no elements");
  }
  return ok_status();
}

void LoopBuilder::set_graph(std::vector<ValueId> outputs) {
  Graph& graph = loop_->graph;
  graph.inputs = {turn_};
  for (const Pair& pair : carried_) graph.inputs.push_back(pair.inner);
  const auto is_read = [&](ValueId id) {
    if (std::count(outputs.begin(), outputs.end(), id) > 0) return true;
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
      return std::count(node.inputs.begin(), node.inputs.end(), id) > 0;
    });
  };
  std::erase_if(captured_, [&](const Pair& pair) {
    return graph.value(pair.inner).constant.has_value() || (pair.if_read && !is_read(pair.inner));
  });
  graph.used_if.clear();
  graph.around.reset();
  for (const Pair& pair : captured_) graph.inputs.push_back(pair.inner);
  graph.outputs = std::move(outputs);
  for (const ValueId out : graph.outputs) graph.output_names.push_back(graph.value(out).name);
  NodeNames names;
  for (Node& node : nodes_) node.name = names.take(node.name, NodeNames::Suffix::kSigns);
  graph.nodes = std::move(nodes_);
  remove_dead_nodes(graph);
}

std::vector<ValueId> LoopBuilder::add_loop(std::vector<ValueId> operands) {
  std::vector<std::string>& inner = loop_->graph.warnings;
  std::move(inner.begin(), inner.end(), std::back_inserter(around_.graph().warnings));
  inner.clear();
  const size_t results = loop_->graph.outputs.size() + 1;
  Node made;
  made.name = around_.node().name;
  made.type = "hone.Loop";
  made.op = find_op(made.type, kMaxOpset);
  made.opset = kMaxOpset;
  made.loop = loop_;
  return around_.append(std::move(made), std::move(operands), results);
}

// A loop that may fail has no turn in a run that does not use it.
void LoopBuilder::leave_out_unused(ValueId& go_or_turns) {
  if (go_or_turns == kNoValue) return;
  const DType type = around_.dtype_of(go_or_turns);
  for (const auto& [condition, value] : around_.graph().used_if) {
    const ValueId is = around_.reshape(condition, {});
    const ValueId used = around_.cast(value ? is : around_.add("Not", {is}), type);
    go_or_turns = around_.binary(type == DType::kBool ? "And" : "Mul",
                                 around_.reshape(go_or_turns, {}), used);
  }
}

Result<LoopResults> LoopBuilder::finish(const LoopEnd& end, ValueId go, ValueId go_on,
                                        std::vector<ValueId> next,
                                        const std::vector<LoopRow>& rows) {
  HONE_RETURN_IF_ERROR(check_carried(next));
  HONE_RETURN_IF_ERROR(check_rows(rows));
  ValueId turns = end.turns;
  if (!end.beyond.empty()) leave_out_unused(go_on != kNoValue ? go : turns);
  if (go_on != kNoValue) {
    loop_->conditional = true;
    next.insert(next.begin(), inner_.reshape(go_on, {}));
    const ValueId first = around_.reshape(go, {});
    carried_.insert(carried_.begin(), {first, loop_->graph.add_value("go", DType::kBool, {})});
  }
  HONE_RETURN_IF_ERROR(inner_.status());
  loop_->carried = next.size();
  loop_->beyond = end.beyond;
  loop_->names_shapes = end.names_shapes;
  loop_->expected_turns = end.expected_turns;
  for (const LoopRow& row : rows) {
    next.push_back(row.value);
    loop_->reversed.push_back(row.reversed);
  }
  // Each result is a value of its own, as passes replace results one by one.
  std::set<ValueId> known;
  for (ValueId& id : next) {
    if (!known.insert(id).second) id = inner_.add("hone.Hold", {id});
  }
  HONE_RETURN_IF_ERROR(inner_.status());
  set_graph(std::move(next));
  share_budget(loop_->graph, around_.graph());

  std::vector<ValueId> operands = {kNoValue};
  if (turns != kNoValue)
    operands[0] = around_.add("hone.Hold", {around_.cast(around_.reshape(turns, {}), DType::kI64)});
  for (const auto* pairs : {&carried_, &captured_}) {
    for (const Pair& pair : *pairs)
      operands.push_back(pair.taken
                             ? pair.outer
                             : around_.add("hone.Hold", {without_extents(around_, pair.outer)}));
  }
  const std::vector<ValueId> made = add_loop(std::move(operands));
  HONE_RETURN_IF_ERROR(around_.status());
  LoopResults results;
  for (size_t i = loop_->conditional ? 1 : 0; i + 1 < made.size(); ++i) {
    const ValueId held = end.holds_results ? around_.add("hone.Hold", {made[i]}) : made[i];
    (i < loop_->carried ? results.carried : results.stacked).push_back(held);
  }
  results.turns = around_.add("hone.Hold", {made.back()});
  return results;
}

}  // namespace hone::graph
