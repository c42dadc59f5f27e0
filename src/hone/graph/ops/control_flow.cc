// If, Loop and Scan. Operators have no side effects, so both branches of an If are computed and one
// chosen where that is cheap, and a loop of few turns is unrolled; one of them that may end early
// goes on with the values that it ended with. Of other branches a run takes one
// (ops/taken_branch.h), and other loops it repeats (ops/repeated_loops.h).
#include <algorithm>
#include <limits>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/repeated_loops.h"
#include "hone/graph/ops/scan_operands.h"
#include "hone/graph/ops/stacked_rows.h"
#include "hone/graph/ops/taken_branch.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// How far a loop is unrolled.
struct Unrolling {
  int64_t turns = 0;
  int64_t uncertain = 0;  // turns of a loop that may end early: all of them are computed
  size_t nodes = 0;       // of all turns
};
// Beyond it a run repeats the loop, if it can be repeated.
constexpr Unrolling kUnrolled = {64, 8, 20'000};
// Beyond it a loop that cannot be repeated is refused.
constexpr Unrolling kMostUnrolled = {10'000, 10'000, size_t{1} << 40};

const SubgraphBody& body_of(const ExpandContext& c, const char* name) {
  return *c.attributes().find<Subgraph>(name)->body;
}

Status check_body(const ExpandContext& c, const char* name) {
  if (c.attributes().find<Subgraph>(name) == nullptr) return c.fail("no attribute '{}'", name);
  return ok_status();
}

// The known value of a condition.
std::optional<bool> known(const ExpandContext& c, ValueId condition) {
  const Tensor* tensor = c.constant_of(condition);
  return tensor != nullptr && tensor->size() == 1 ? std::optional(tensor->at(0) != 0)
                                                  : std::nullopt;
}

Status check_condition(const ExpandContext& c, ValueId condition) {
  if (c.dtype_of(condition) != DType::kBool || num_elements(c.shape_of(condition)) != 1)
    return c.fail("a condition {} {}", dtype_name(c.dtype_of(condition)),
                  to_string(c.shape_of(condition)));
  return ok_status();
}

// Returns what a loop without iterations stacks along a dimension, for rows of this shape.
ValueId no_rows(ExpandContext& c, DType dtype, Shape shape, int64_t axis) {
  shape.insert(shape.begin() + axis, 0);
  return c.constant(Tensor(dtype, shape));
}

Result<ValueId> choose(ExpandContext& c, ValueId condition, ValueId a, ValueId b);

// One of two sequences or optional values, part by part.
Result<ValueId> choose_parts(ExpandContext& c, ValueId condition, ValueId a, ValueId b) {
  const Aggregate *x = aggregate_of(a), *y = aggregate_of(b);
  std::optional<Aggregate> first, second;
  if (x != nullptr && y != nullptr && x->optional == y->optional) {
    first = in_parts(c, *x);
    second = in_parts(c, *y);
  }
  if (!first || !second || first->parts.size() != second->parts.size()) {
    return c.unsupported(
        "a condition that is known at run time only chooses among sequences or optional values "
        "that do not have equally many parts");
  }
  Aggregate chosen = {first->optional, first->dtype, {}};
  for (size_t i = 0; i < first->parts.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const ValueId part,
                          choose(c, condition, first->parts[i], second->parts[i]));
    chosen.parts.push_back(part);
  }
  return add_aggregate(c, std::move(chosen));
}

// One of two values that need not have one shape.
Result<ValueId> choose(ExpandContext& c, ValueId condition, ValueId a, ValueId b) {
  if (a == b) return a;
  if (aggregate_of(a) != nullptr || aggregate_of(b) != nullptr)
    return choose_parts(c, condition, a, b);
  const Shape &x = c.shape_of(a), &y = c.shape_of(b);
  if (c.dtype_of(a) != c.dtype_of(b) || x.size() != y.size()) {
    return c.unsupported("results {} {} and {} {}, of which the condition chooses",
                         dtype_name(c.dtype_of(a)), to_string(x), dtype_name(c.dtype_of(b)),
                         to_string(y));
  }
  const ValueId scalar = c.reshape(condition, {});
  if (x == y && c.extents_of(a) == c.extents_of(b)) return c.add("Where", {scalar, a, b});
  Shape largest = x;
  for (size_t d = 0; d < x.size(); ++d) largest[d] = std::max(x[d], y[d]);
  const ValueId extents = c.add("Where", {scalar, actual_extents(c, a), actual_extents(c, b)});
  return with_extents(c, c.add("Where", {scalar, grown(c, a, largest), grown(c, b, largest)}),
                      extents);
}

// The error of a branch, or of results that do not go together. A condition that is known leaves
// the other branch out, so the import says which inputs would have to be bound.
Status undecided(const ExpandContext& c, const Status& status) {
  const Status asked = c.required(0, "the condition").status();
  if (asked.ok()) return status;
  return {status.code(), fmt::format("{}, in a branch of node '{}' (If), whose condition is "
                                     "computed at run time: one that is known leaves the other "
                                     "branch out",
                                     status.message(), c.node().name)};
}

std::vector<ValueId> inline_if(ExpandContext& c, const SubgraphBody& body,
                               const std::vector<ValueId>& arguments, ValueId condition,
                               bool value) {
  const UsedIf used(c.graph(), {{condition, value}});
  return c.inline_body(body, arguments);
}

// Both branches of a condition that is known at run time only.
Result<std::vector<ValueId>> build_both(ExpandContext& c, const SubgraphBody& then_body,
                                        const SubgraphBody& else_body) {
  const std::vector<ValueId> a = inline_if(c, then_body, {}, c.input(0), true);
  const std::vector<ValueId> b = inline_if(c, else_body, {}, c.input(0), false);
  HONE_RETURN_IF_ERROR(c.status());
  std::vector<ValueId> chosen;
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    HONE_ASSIGN_OR_RETURN(const ValueId value, choose(c, c.input(0), a[i], b[i]));
    chosen.push_back(value);
  }
  HONE_RETURN_IF_ERROR(c.status());
  return chosen;
}

// Computing both branches takes less time than keeping them apart, which copies what they read and
// what they make, and keeps their kernels from being fused with others.
bool is_cheap(const ExpandContext& c, const std::vector<Node>& nodes,
              const std::vector<ValueId>& results) {
  constexpr double kOperations = 1 << 18;  // some ten microseconds
  constexpr double kPerElement = 16;
  double elements = 0;
  for (const ValueId result : results)
    elements += static_cast<double>(num_elements(c.shape_of(result)));
  return operations_of(c.graph(), nodes) <= std::max(kOperations, kPerElement * elements);
}

// How deep the If is inside others whose branches are being built. Each may be built twice, so that
// from some depth on only one way is tried.
thread_local int nested_branches = 0;
constexpr int kMostNestedBranches = 4;
struct InBranches {
  InBranches() { ++nested_branches; }
  ~InBranches() { --nested_branches; }
  InBranches(const InBranches&) = delete;
  InBranches& operator=(const InBranches&) = delete;
};

Status expand_unknown(ExpandContext& c, const SubgraphBody& then_body,
                      const SubgraphBody& else_body) {
  const bool tries_both = nested_branches < kMostNestedBranches;
  const InBranches inside;
  std::vector<Node> nodes;
  const Result<std::vector<ValueId>> both = [&] {
    const NodesBefore before(c.graph(), c.nodes());
    ExpandContext apart(c.graph(), c.node(), nodes);
    return build_both(apart, then_body, else_body);
  }();
  const bool computes_both = both.ok() && (!c.graph().repeats_steps ||
                                           (!c.graph().keeps_loops && is_cheap(c, nodes, *both)));
  if (tries_both && !computes_both) {
    const Status taken = expand_taken_branch(c, then_body, else_body, !both.ok());
    if (taken.ok()) return taken;
  }
  if (!both.ok()) return undecided(c, both.status());
  LoopBuilder::add_nodes(c, std::move(nodes));
  for (size_t i = 0; i < both->size(); ++i) c.result(i, (*both)[i]);
  return c.status();
}

Status expand_if(ExpandContext& c) {
  for (const char* name : {"then_branch", "else_branch"}) HONE_RETURN_IF_ERROR(check_body(c, name));
  const ValueId condition = c.input(0);
  HONE_RETURN_IF_ERROR(check_condition(c, condition));
  const SubgraphBody &then_body = body_of(c, "then_branch"), &else_body = body_of(c, "else_branch");
  const size_t results = c.num_outputs();
  if (then_body.outputs.size() < results || else_body.outputs.size() < results)
    return c.fail("{} results of branches with {} and {}", results, then_body.outputs.size(),
                  else_body.outputs.size());
  if (const auto value = known(c, condition)) {
    const std::vector<ValueId> chosen = c.inline_body(*value ? then_body : else_body, {});
    for (size_t i = 0; i < results; ++i) c.result(i, chosen[i]);
    return ok_status();
  }
  return expand_unknown(c, then_body, else_body);
}

// The result of one of two branches that were nodes of the file (graph/widen_nodes.h).
Status expand_choose(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_condition(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(const ValueId chosen, choose(c, c.input(0), c.input(1), c.input(2)));
  c.result(0, chosen);
  return ok_status();
}

// The turns of a loop, and what became of its values.
class UnrolledLoop {
 public:
  UnrolledLoop(ExpandContext& c, const Unrolling& limit)
      : c_(c), limit_(limit), body_(body_of(c, "body")) {}

  // Returns false, without results, if the loop has more turns than the limit.
  Result<bool> run() {
    if (body_.inputs.size() < 2 || body_.outputs.size() + 1 < body_.inputs.size())
      return c_.fail("a body with {} inputs and {} results", body_.inputs.size(),
                     body_.outputs.size());
    HONE_RETURN_IF_ERROR(check_loop_results(c_, body_));
    const size_t carried = body_.inputs.size() - 2;
    scans_.resize(body_.outputs.size() - 1 - carried);
    for (size_t i = 0; i < carried; ++i) {
      if (!c_.has(2 + i)) return c_.fail("operand {} is missing", 2 + i);
      values_.push_back(c_.input(2 + i));
    }
    HONE_ASSIGN_OR_RETURN(const int64_t turns, count_turns());
    for (int64_t turn = 0; turn < turns && known(c_, active_) != false; ++turn) {
      if (is_beyond(turn, turns)) return false;
      HONE_RETURN_IF_ERROR(one_turn(turn));
    }
    for (size_t i = 0; i < carried; ++i) c_.result(i, values_[i]);
    for (size_t i = 0; i < scans_.size(); ++i) {
      if (c_.wants(carried + i)) HONE_RETURN_IF_ERROR(stack(i, carried + i));
    }
    return true;
  }

 private:
  Result<int64_t> count_turns() {
    active_ = c_.has(1) ? c_.input(1) : c_.scalar(DType::kBool, 1);
    HONE_RETURN_IF_ERROR(check_condition(c_, active_));
    if (known(c_, active_) == false) return 0;
    if (!c_.has(0)) return std::numeric_limits<int64_t>::max();  // until the condition is false
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> trip, c_.integers(0, "the number of turns"));
    if (trip.size() != 1) return c_.fail("a number of turns of {} elements", trip.size());
    return std::max<int64_t>(trip[0], 0);
  }

  // Returns whether the loop, which has a turn of this number, has more than the limit.
  [[nodiscard]] bool is_beyond(int64_t turn, int64_t turns) const {
    const bool certain = known(c_, active_).has_value();
    // A condition that is computed from constants may end the loop at any turn; with one that is
    // not known, all turns up to the last possible one are computed.
    const int64_t needed = certain && !keeps_condition() ? turn + 1 : turns;
    const auto nodes = static_cast<int64_t>(std::max<size_t>(body_.nodes.size(), 1));
    return needed > limit_.turns || (!certain && needed > limit_.uncertain) ||
           needed > static_cast<int64_t>(limit_.nodes) / nodes;
  }

  // Returns whether the body hands its condition on, or has a constant in its place.
  [[nodiscard]] bool keeps_condition() const {
    int local = body_.outputs[0];
    for (size_t i = body_.nodes.size(); i-- > 0;) {
      const Node& node = body_.nodes[i];
      if (node.outputs[0] != local) continue;
      if (node.type != "Identity" || !node.has_input(0)) return node.type == "Constant";
      local = node.inputs[0];
    }
    return local == body_.inputs[1] ||
           std::any_of(body_.constants.begin(), body_.constants.end(),
                       [&](const auto& constant) { return constant.first == local; });
  }

  Status one_turn(int64_t turn) {
    const bool certain = known(c_, active_).has_value();
    const std::vector<ValueId> results = certain
                                             ? c_.inline_body(body_, arguments(turn))
                                             : inline_if(c_, body_, arguments(turn), active_, true);
    HONE_RETURN_IF_ERROR(c_.status());
    for (size_t i = 0; i < values_.size(); ++i) {
      if (certain) {
        values_[i] = results[1 + i];
      } else {
        HONE_ASSIGN_OR_RETURN(values_[i], choose(c_, active_, results[1 + i], values_[i]));
      }
    }
    for (size_t i = 0; i < scans_.size(); ++i) {
      const ValueId row = results[1 + values_.size() + i];
      scans_[i].push_back(row);
    }
    taken_.push_back(certain ? kNoValue : active_);
    if (!certain) count_turn(turn);
    HONE_RETURN_IF_ERROR(check_condition(c_, results[0]));
    active_ = certain ? results[0]
                      : c_.binary("And", c_.reshape(active_, {}), c_.reshape(results[0], {}));
    return c_.status();
  }

  std::vector<ValueId> arguments(int64_t turn) {
    std::vector<ValueId> list = {c_.scalar(DType::kI64, static_cast<double>(turn)),
                                 c_.reshape(active_, {})};
    list.insert(list.end(), values_.begin(), values_.end());
    return list;
  }

  // Declares result `at`: the rows of all turns.
  Status stack(size_t i, size_t at) {
    if (scans_[i].empty()) {
      // What the first iteration would have stacked.
      HONE_ASSIGN_OR_RETURN(const auto outputs, c_.outputs_of(body_, arguments(0)));
      const size_t output = 1 + values_.size() + i;
      const ValueId row = outputs[output];
      c_.result(at, no_rows(c_, c_.dtype_of(row), shape_of_no_row(c_, body_, output, row), 0));
      return ok_status();
    }
    HONE_ASSIGN_OR_RETURN(const StackedRows stacked, stack_rows(c_, scans_[i], taken_, 0));
    const auto turns = std::ssize(scans_[i]);
    const ExtentPart count =
        turns_done_ != kNoValue ? ExtentPart{turns_done_, 0} : ExtentPart{kNoValue, turns};
    c_.result(at, with_extents(c_, stacked.value,
                               join_extents(c_, joined({count}, shape_of_rows(i, stacked)))));
    return ok_status();
  }

  // Returns the shape of the rows of a run, which may have none.
  std::vector<ExtentPart> shape_of_rows(size_t i, const StackedRows& stacked) {
    const ValueId row = scans_[i][0];
    if (c_.extents_of(row) == kNoValue || !may_have_no_turn_) return stacked.row;
    const Shape none = shape_of_no_row(c_, body_, 1 + values_.size() + i, row);
    const ValueId is_none = c_.binary("Equal", turns_done_, 0.0);
    const ValueId made = join_extents(c_, stacked.row);
    const ValueId extents = c_.add("Where", {is_none, c_.integers(none), made});
    std::vector<ExtentPart> parts;
    for (int64_t d = 0; d < std::ssize(none); ++d) parts.push_back({extents, d});
    return parts;
  }

  // From the first turn that may not take place on.
  void count_turn(int64_t turn) {
    may_have_no_turn_ = may_have_no_turn_ || turn == 0;
    if (turns_done_ == kNoValue) turns_done_ = c_.integers({turn});
    turns_done_ = c_.binary("Add", turns_done_, c_.cast(c_.reshape(active_, {1}), DType::kI64));
  }

  ExpandContext& c_;
  const Unrolling& limit_;
  const SubgraphBody& body_;
  std::vector<ValueId> values_;              // carried from turn to turn
  std::vector<std::vector<ValueId>> scans_;  // per result that is stacked, its rows
  std::vector<ValueId> taken_;               // per turn, whether it takes place; missing if it does
  ValueId active_ = kNoValue;                // whether the next turn takes place
  ValueId turns_done_ = kNoValue;            // [1], if that is known at run time only
  bool may_have_no_turn_ = false;
};

// Returns whether the number of turns is known, or there is none.
bool turns_known(const ExpandContext& c) {
  return !c.has(0) || c.constant_of(c.input(0)) != nullptr;
}

Status expand_loop(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_body(c, "body"));
  if (turns_known(c) && !c.graph().keeps_loops) {
    HONE_ASSIGN_OR_RETURN(const bool unrolled, UnrolledLoop(c, kUnrolled).run());
    if (unrolled) return ok_status();
  }
  const Status repeated = repeat_loop(c);
  if (repeated.code() != Code::kUnsupported) return repeated;
  // So that the import can say which inputs would have to be bound.
  if (!turns_known(c) && !c.required(0, "the number of turns").ok()) return repeated;
  HONE_ASSIGN_OR_RETURN(const bool unrolled, UnrolledLoop(c, kMostUnrolled).run());
  return unrolled ? ok_status() : repeated;
}

class UnrolledScan {
 public:
  UnrolledScan(ExpandContext& c, ScanOperands operands)
      : c_(c),
        body_(body_of(c, "body")),
        values_(std::move(operands.states)),
        operands_(std::move(operands.scanned)),
        turns_(operands.turns) {}

  Status run() {
    rows_.resize(body_.outputs.size() - values_.size());
    for (int64_t turn = 0; turn < turns_; ++turn) HONE_RETURN_IF_ERROR(take_turn(turn));
    std::vector<ValueId> unmade;  // the results of a step where there is none
    if (turns_ == 0 && !rows_.empty()) {
      HONE_ASSIGN_OR_RETURN(unmade, c_.outputs_of(body_, arguments_of_none()));
    }
    for (size_t i = 0; i < values_.size(); ++i) c_.result(i, values_[i]);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const size_t at = values_.size() + i;
      if (c_.wants(at)) HONE_RETURN_IF_ERROR(set_rows(i, turns_ > 0 ? rows_[i][0] : unmade[at]));
    }
    return ok_status();
  }

 private:
  Status take_turn(int64_t turn) {
    std::vector<ValueId> arguments = values_;
    for (const ScanOperand& operand : operands_) {
      const int64_t at = operand.direction != 0 ? turns_ - 1 - turn : turn;
      const ValueId row = c_.slice(operand.value, operand.axis, at, at + 1);
      arguments.push_back(c_.add("Squeeze", {row, c_.integers({operand.axis})}));
    }
    const std::vector<ValueId> results = c_.inline_body(body_, arguments);
    HONE_RETURN_IF_ERROR(c_.status());
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = results[i];
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i].push_back(results[values_.size() + i]);
    return ok_status();
  }

  std::vector<ValueId> arguments_of_none() {
    std::vector<ValueId> arguments = values_;
    for (const ScanOperand& operand : operands_) {
      Shape shape = c_.shape_of(operand.value);
      shape.erase(shape.begin() + operand.axis);
      arguments.push_back(c_.graph().add_value("stand_in", c_.dtype_of(operand.value), shape));
    }
    return arguments;
  }

  // Joins the rows of a result, each of which is like `one`.
  Status set_rows(size_t i, ValueId one) {
    HONE_ASSIGN_OR_RETURN(const int64_t given, scan_entry(c_, "scan_output_axes", i));
    HONE_ASSIGN_OR_RETURN(const int64_t direction, scan_entry(c_, "scan_output_directions", i));
    const auto axis = normalize_axis(given, c_.rank_of(one) + 1);
    if (!axis) return c_.fail("scan_output_axes has {}", given);
    const size_t at = values_.size() + i;
    if (turns_ == 0) {
      c_.result(at, no_rows(c_, c_.dtype_of(one), shape_of_no_row(c_, body_, at, one), *axis));
      return ok_status();
    }
    if (direction != 0) std::reverse(rows_[i].begin(), rows_[i].end());
    HONE_ASSIGN_OR_RETURN(StackedRows stacked,
                          stack_rows(c_, rows_[i], {}, static_cast<size_t>(*axis)));
    stacked.row.insert(stacked.row.begin() + *axis, {kNoValue, turns_});
    c_.result(at, with_extents(c_, stacked.value, join_extents(c_, stacked.row)));
    return ok_status();
  }

  ExpandContext& c_;
  const SubgraphBody& body_;
  std::vector<ValueId> values_;  // what a step hands to the next one
  std::vector<ScanOperand> operands_;
  std::vector<std::vector<ValueId>> rows_;  // results of all steps
  int64_t turns_;
};

Status expand_scan(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_body(c, "body"));
  const SubgraphBody& body = body_of(c, "body");
  HONE_ASSIGN_OR_RETURN(ScanOperands operands, scan_operands(c, body));
  const auto nodes = static_cast<int64_t>(std::max<size_t>(body.nodes.size(), 1));
  if (operands.count != kNoValue) return repeat_scan(c);
  if (c.graph().keeps_loops || operands.turns > kUnrolled.turns ||
      operands.turns > static_cast<int64_t>(kUnrolled.nodes) / nodes) {
    const Status repeated = repeat_scan(c);
    if (repeated.code() != Code::kUnsupported || operands.turns > kMostUnrolled.turns)
      return repeated;
  }
  return UnrolledScan(c, std::move(operands)).run();
}

}  // namespace

std::span<const Op> control_flow_ops() {
  constexpr int kAny = 100'000;  // captured values are operands, too
  static const Op ops[] = {
      expanded_op("If", 1, {1, kAny, kAny}, "then_branch:g else_branch:g", expand_if),
      expanded_op("Loop", 1, {0, kAny, kAny}, "body:g", expand_loop),
      expanded_op("hone.Choose", 1, {3, 3}, "", expand_choose),
      expanded_op("Scan", 9, {1, kAny, kAny},
                  "body:g num_scan_inputs:i scan_input_axes:is scan_input_directions:is "
                  "scan_output_axes:is scan_output_directions:is",
                  expand_scan),
  };
  return ops;
}

}  // namespace hone::graph
