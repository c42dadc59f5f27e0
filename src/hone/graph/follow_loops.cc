// Loops in a graph of ranges (graph/loop_body.h): the body is followed like the graph around it, by
// the loops that the probes have in its place, and reads the sizes of the run from outside. A
// number of turns that follows from the sizes is computed at run time.
#include <algorithm>
#include <numeric>

#include "hone/graph/passes/rewrite.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// The values of a body have the same ids at all sizes, as they are made in one order.
SizeProbe probe_of_body(const SizeProbe& around, const Graph& body) {
  SizeProbe probe{
      .symbols = around.symbols, .graph = body, .twins = {}, .producers = {}, .alike = {}};
  probe.twins.resize(body.values.size());
  std::iota(probe.twins.begin(), probe.twins.end(), 0);
  probe.alike.assign(body.values.size(), true);
  probe.producers = Uses(body).producer;
  return probe;
}

bool all_contiguous(const ShapeParts& parts) {
  return std::all_of(parts.begin(), parts.end(), is_contiguous);
}

// Carried values lie in the same way in all turns: without gaps.
Status remove_gaps(SizeRule& rule, ValueId& value) {
  for (size_t d = 0; d < rule.sizes.parts_of(value).size(); ++d)
    HONE_RETURN_IF_ERROR(make_contiguous(rule, value, d));
  return ok_status();
}

// Loops read copies that nothing else reads.
ValueId held(SizeFollower& sizes, ExpandContext& c, ValueId value) {
  const ShapeParts parts = sizes.parts_of(value);
  const ValueId copy = c.add("hone.Hold", {value});
  sizes.set_parts(copy, parts);
  return copy;
}

}  // namespace

Result<std::vector<const LoopBody*>> SizeFollower::loops_of_probes(const Node& node) const {
  std::vector<const LoopBody*> loops;
  for (const SizeProbe& probe : probes_) {
    const Node* twin = nullptr;
    for (const ValueId out : node.outputs) {
      if (out != kNoValue && twin == nullptr) twin = probe.producer_of_twin(origin(out));
    }
    if (twin == nullptr || twin->loop == nullptr || !same_kind(*twin->loop, *node.loop)) {
      return InferContext(graph_, node)
          .unsupported(
              "a loop, or an If of which a run takes one branch, whose operators are other ones at "
              "{}: give a range without these sizes, or one size (--shape)",
              text_of(probe.symbols));
    }
    loops.push_back(twin->loop.get());
  }
  return loops;
}

// A constant number of turns that is another one at other sizes.
Status SizeFollower::set_turns(ExpandContext& c, Node& node,
                               const std::vector<const LoopBody*>& loops) {
  if (node.has_input(0)) return ok_status();
  std::vector<SizeSample> samples = {{&most_, node.loop->most}};
  for (size_t i = 0; i < loops.size(); ++i)
    samples.push_back({&probes_[i].symbols, loops[i]->most});
  const auto form = form_of(samples);
  if (!form)
    return c.unsupported(
        "its number of turns does not follow from the sizes as a sum, a product or a quotient of "
        "them: give one size (--shape)");
  if (*form == kNoForm) return ok_status();
  node.inputs.resize(std::max<size_t>(node.inputs.size(), 1), kNoValue);
  node.inputs[0] = c.add("hone.Hold", {size_of(c, *form)});
  return c.status();
}

Result<std::optional<ValueId>> SizeFollower::captured_at_run_time(ValueId constant) {
  if (enclosing_.follower == nullptr) return std::optional<ValueId>();
  SizeFollower& around = *enclosing_.follower;
  const auto at = enclosing_.loop->captured_constants.find(constant);
  if (at == enclosing_.loop->captured_constants.end()) return std::optional<ValueId>();
  // A graph without another reader of it has dropped it.
  Value& given = around.graph_.value(at->second);
  if (!given.constant) given.constant = graph_.value(constant).constant;
  // Both graphs go on with one list of forms.
  around.graph_.varying.forms = graph_.varying.forms;
  ExpandContext& c = *enclosing_.c;
  HONE_ASSIGN_OR_RETURN(const ValueId outer, around.data_at_run_time(c, at->second));
  enclosing_.operands->push_back(held(around, c, outer));
  graph_.varying.forms = around.graph_.varying.forms;
  const Value& made = around.graph_.value(outer);
  const ValueId inner = graph_.add_value(made.name, made.dtype, made.shape);
  set_parts(inner, around.parts_of(outer));
  origins_[inner] = constant;
  graph_.inputs.insert(graph_.inputs.end() - 1, inner);
  return std::optional(inner);
}

Status SizeFollower::follow_loop(Node node) {
  const Node given = node;
  ExpandContext c(graph_, given, nodes_);
  SizeRule rule{*this, c, node};
  HONE_RETURN_IF_ERROR(check_alike(node, true));
  HONE_ASSIGN_OR_RETURN(const std::vector<const LoopBody*> loops, loops_of_probes(node));
  HONE_RETURN_IF_ERROR(set_turns(c, node, loops));
  auto loop = std::make_shared<LoopBody>(*node.loop);
  node.inputs.resize(loop->graph.inputs.size(), kNoValue);
  std::vector<ShapeParts> inputs(1);  // the number of the turn has no dimensions
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    ValueId& operand = node.inputs[i];
    if (i <= loop->carried && !all_contiguous(parts_of(operand))) {
      HONE_RETURN_IF_ERROR(remove_gaps(rule, operand));
      operand = held(*this, c, operand);
    }
    inputs.push_back(graph_.value(operand).forms);
  }
  node.inputs.push_back(held(*this, c, graph_.varying.sizes));
  HONE_RETURN_IF_ERROR(c.status());
  std::vector<SizeProbe> probes;
  for (size_t i = 0; i < loops.size(); ++i)
    probes.push_back(probe_of_body(probes_[i], loops[i]->graph));
  const Graph no_file;
  SizeFollower inside(loop->graph, no_file, probes, graph_.varying.symbols);
  std::vector<ValueId> captured;
  const Status status =
      inside.run_body({this, &c, node.loop.get(), &captured}, inputs, loop->carried);
  full_ = full_ || inside.full_;
  HONE_RETURN_IF_ERROR(status);
  node.inputs.insert(node.inputs.end() - 1, captured.begin(), captured.end());
  graph_.varying.forms = loop->graph.varying.forms;
  loop->graph.varying.forms.clear();
  loop->graph.varying.symbols.clear();
  for (const ValueId out : loop->graph.outputs) loop->parts.push_back(loop->graph.value(out).forms);
  node.loop = std::move(loop);
  HONE_RETURN_IF_ERROR(declare_results(c, node));
  return check_parts(given);
}

Status SizeFollower::run_body(const Enclosing& around, const std::vector<ShapeParts>& inputs,
                              size_t carried) {
  known_ = graph_.values.size();
  enclosing_ = around;
  graph_.varying.symbols = around.follower->graph_.varying.symbols;
  graph_.varying.forms = around.follower->graph_.varying.forms;
  for (size_t i = 0; i < inputs.size(); ++i) set_parts(graph_.inputs[i], inputs[i]);
  graph_.varying.sizes = graph_.add_value("hone.sizes", DType::kI64, {kMaxForms});
  graph_.inputs.push_back(graph_.varying.sizes);
  HONE_RETURN_IF_ERROR(follow_nodes(std::move(graph_.nodes)));
  Node source;
  source.name = "hone.sizes";
  source.type = "Identity";
  ExpandContext c(graph_, source, nodes_);
  SizeRule rule{*this, c, source};
  std::set<ValueId> known;
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    ValueId& out = graph_.outputs[i];
    HONE_ASSIGN_OR_RETURN(out, data_at_run_time(c, out));
    if (i < carried) HONE_RETURN_IF_ERROR(remove_gaps(rule, out));
    if (!known.insert(out).second) out = held(*this, c, out);
  }
  HONE_RETURN_IF_ERROR(c.status());
  finish_nodes();
  return ok_status();
}

Status SizeFollower::declare_results(ExpandContext& c, Node node) {
  const LoopBody& loop = *node.loop;
  const std::vector<ValueId> outputs = node.outputs;
  const auto is_wanted = [&](size_t i) { return i < outputs.size() && outputs[i] != kNoValue; };
  for (size_t i = 0; i < loop.carried; ++i) {
    if (is_wanted(i)) set_parts(outputs[i], parts_of(node.inputs[1 + i]));
  }
  std::vector<size_t> at_end;  // rows that begin at the end of what a run has
  for (size_t i = 0; i < loop.rows(); ++i) {
    const size_t at = loop.carried + i;
    if (!is_wanted(at)) continue;
    const auto turns = seen_part(outputs[at], 0);
    if (!turns) return c.unsupported("the number of its rows does not follow from the sizes");
    ShapeParts parts = {{*turns}};
    const ValueId row = loop.graph.outputs[at];
    for (size_t d = 0; d < loop.graph.value(row).shape.size(); ++d)
      parts.push_back(loop.parts[at].empty() ? DimParts{{kNoForm, loop.graph.value(row).shape[d]}}
                                             : loop.parts[at][d]);
    set_parts(outputs[at], std::move(parts));
    if (!loop.reversed[i] || turns->form == kNoForm) continue;
    at_end.push_back(at);
    const Value& value = graph_.value(outputs[at]);
    node.outputs[at] = graph_.add_value(value.name + ".rows", value.dtype, value.shape);
  }
  const std::vector<ValueId> made = node.outputs;
  nodes_.push_back(std::move(node));
  for (const size_t at : at_end) {
    const ShapeParts parts = parts_of(outputs[at]);
    std::vector<int64_t> places(static_cast<size_t>(loop.most));
    std::iota(places.begin(), places.end(), 0);
    const auto last = static_cast<double>(loop.most - 1);
    const ValueId missing = c.binary("Sub", c.scalar(DType::kI64, static_cast<double>(loop.most)),
                                     size_of(c, parts[0][0].form));
    const ValueId from = c.binary("Min", c.binary("Add", c.integers(places), missing), last);
    c.result(at, c.add("Gather", {c.add("hone.Hold", {made[at]}), from}));
    set_parts(outputs[at], parts);
  }
  return c.status();
}

}  // namespace hone::graph
