// If, Loop and Scan. Operators have no side effects, so both branches of an If may be computed and
// one chosen, and a loop whose number of turns is known is unrolled; a loop that may end early goes
// on with the values that it ended with.
#include <algorithm>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

constexpr int64_t kMaxTurns = 10'000;

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

// x with zeros behind it, up to `shape`.
ValueId grown(ExpandContext& c, ValueId x, const Shape& shape) {
  if (c.shape_of(x) == shape) return without_extents(c, x);
  if (num_elements(c.shape_of(x)) == 0) return c.constant(Tensor(c.dtype_of(x), shape));
  std::vector<int64_t> pads(2 * shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) pads[shape.size() + d] = shape[d] - c.shape_of(x)[d];
  return c.add("Pad", {without_extents(c, x), c.integers(pads)});
}

// Returns what a loop without iterations stacks along a dimension, for rows like this one.
ValueId no_rows(ExpandContext& c, ValueId row, int64_t axis) {
  Shape shape = c.shape_of(row);
  shape.insert(shape.begin() + axis, 0);
  return c.constant(Tensor(c.dtype_of(row), shape));
}

Result<ValueId> choose(ExpandContext& c, ValueId condition, ValueId a, ValueId b);

// One of two sequences or optional values, part by part.
Result<ValueId> choose_parts(ExpandContext& c, ValueId condition, ValueId a, ValueId b) {
  const Aggregate *x = aggregate_of(a), *y = aggregate_of(b);
  if (x == nullptr || y == nullptr || x->optional != y->optional ||
      x->parts.size() != y->parts.size()) {
    return c.unsupported(
        "a condition that is known at run time only chooses among sequences or optional values "
        "that do not have equally many parts");
  }
  Aggregate chosen = {x->optional, x->dtype, {}};
  const std::vector<ValueId> first = x->parts, second = y->parts;
  for (size_t i = 0; i < first.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const ValueId part, choose(c, condition, first[i], second[i]));
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

// Both branches of a condition that is known at run time only.
Status expand_both(ExpandContext& c, const SubgraphBody& then_body, const SubgraphBody& else_body) {
  const std::vector<ValueId> a = c.inline_body(then_body, {}), b = c.inline_body(else_body, {});
  HONE_RETURN_IF_ERROR(c.status());
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    HONE_ASSIGN_OR_RETURN(const ValueId value, choose(c, c.input(0), a[i], b[i]));
    c.result(i, value);
  }
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
  const Status both = expand_both(c, then_body, else_body);
  return both.ok() ? both : undecided(c, both);
}

// The turns of a loop, and what became of its values.
class Loop {
 public:
  explicit Loop(ExpandContext& c) : c_(c), body_(body_of(c, "body")) {}

  Status run() {
    if (body_.inputs.size() < 2 || body_.outputs.size() + 1 < body_.inputs.size())
      return c_.fail("a body with {} inputs and {} results", body_.inputs.size(),
                     body_.outputs.size());
    const size_t carried = body_.inputs.size() - 2;
    scans_.resize(body_.outputs.size() - 1 - carried);
    for (size_t i = 0; i < carried; ++i) {
      if (!c_.has(2 + i)) return c_.fail("operand {} is missing", 2 + i);
      values_.push_back(c_.input(2 + i));
    }
    HONE_ASSIGN_OR_RETURN(const int64_t turns, count_turns());
    for (int64_t turn = 0; turn < turns && known(c_, active_) != false; ++turn) {
      HONE_RETURN_IF_ERROR(one_turn(turn));
    }
    for (size_t i = 0; i < carried; ++i) c_.result(i, values_[i]);
    for (size_t i = 0; i < scans_.size(); ++i) {
      if (!c_.wants(carried + i)) continue;
      if (scans_[i].empty()) {
        HONE_ASSIGN_OR_RETURN(const ValueId row, row_of_no_turn(i));
        c_.result(carried + i, no_rows(c_, row, 0));
        continue;
      }
      ValueId stacked = c_.add("Concat", scans_[i], {{"axis", int64_t{0}}});
      if (turns_done_ != kNoValue) {
        Shape rest = c_.shape_of(stacked);
        rest.erase(rest.begin());
        stacked = with_extents(
            c_, stacked,
            c_.add("Concat", {turns_done_, c_.integers(rest)}, {{"axis", int64_t{0}}}));
      }
      c_.result(carried + i, stacked);
    }
    return ok_status();
  }

 private:
  Result<int64_t> count_turns() {
    active_ = c_.has(1) ? c_.input(1) : c_.scalar(DType::kBool, 1);
    HONE_RETURN_IF_ERROR(check_condition(c_, active_));
    if (known(c_, active_) == false) return 0;
    if (!c_.has(0)) return kMaxTurns + 1;  // until the condition is known to be false
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> trip, c_.integers(0, "the number of turns"));
    if (trip.size() != 1) return c_.fail("a number of turns of {} elements", trip.size());
    return std::max<int64_t>(trip[0], 0);
  }

  Status one_turn(int64_t turn) {
    const bool certain = known(c_, active_).has_value();
    if (turn >= kMaxTurns || (!certain && !c_.has(0)))
      return c_.unsupported("a loop whose number of turns is not known, or above {}", kMaxTurns);
    const std::vector<ValueId> results = c_.inline_body(body_, arguments(turn));
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
      scans_[i].push_back(c_.add("Unsqueeze", {row, c_.integers({0})}));
    }
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

  // Returns what the first iteration would have stacked.
  Result<ValueId> row_of_no_turn(size_t i) {
    HONE_ASSIGN_OR_RETURN(const auto outputs, c_.outputs_of(body_, arguments(0)));
    return outputs[1 + values_.size() + i];
  }

  // From the first turn that may not take place on.
  void count_turn(int64_t turn) {
    if (turns_done_ == kNoValue) turns_done_ = c_.integers({turn});
    turns_done_ = c_.binary("Add", turns_done_, c_.cast(c_.reshape(active_, {1}), DType::kI64));
  }

  ExpandContext& c_;
  const SubgraphBody& body_;
  std::vector<ValueId> values_;              // carried from turn to turn
  std::vector<std::vector<ValueId>> scans_;  // per result that is stacked, its rows
  ValueId active_ = kNoValue;                // whether the next turn takes place
  ValueId turns_done_ = kNoValue;            // [1], if that is known at run time only
};

Status expand_loop(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_body(c, "body"));
  return Loop(c).run();
}

// Per scanned operand or result, an attribute's entry.
Result<int64_t> entry(const ExpandContext& c, const char* name, size_t i) {
  const std::vector<int64_t> list = c.attributes().integers(name);
  if (!list.empty() && i >= list.size())
    return c.fail("attribute '{}' has {} entries", name, list.size());
  return list.empty() ? 0 : list[i];
}

class ScanNode {
 public:
  explicit ScanNode(ExpandContext& c) : c_(c), body_(body_of(c, "body")) {}

  Status run() {
    HONE_RETURN_IF_ERROR(read_operands());
    if (turns_ > kMaxTurns) return c_.unsupported("more than {} steps", kMaxTurns);
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
  // An operand that the steps go through, along an axis.
  struct Operand {
    ValueId value;
    int64_t axis, direction;
  };

  Status read_operands() {
    const int64_t scanned = c_.attributes().integer("num_scan_inputs", 0);
    const auto inputs = static_cast<int64_t>(body_.inputs.size());
    const int64_t states = inputs - scanned;
    if (scanned < 1 || states < 0 || std::ssize(body_.outputs) < states)
      return c_.fail("{} scanned operands, and a body with {} inputs and {} results", scanned,
                     inputs, body_.outputs.size());
    for (int64_t i = 0; i < inputs; ++i) {
      if (!c_.has(static_cast<size_t>(i))) return c_.fail("operand {} is missing", i);
      const ValueId value = c_.input(static_cast<size_t>(i));
      if (i < states) {
        values_.push_back(value);
      } else {
        HONE_RETURN_IF_ERROR(add_operand(value, static_cast<size_t>(i - states)));
      }
    }
    return ok_status();
  }

  Status add_operand(ValueId value, size_t k) {
    HONE_ASSIGN_OR_RETURN(const int64_t given, entry(c_, "scan_input_axes", k));
    HONE_ASSIGN_OR_RETURN(const int64_t direction, entry(c_, "scan_input_directions", k));
    const auto axis = normalize_axis(given, c_.rank_of(value));
    if (!axis) return c_.fail("scan_input_axes has {}", given);
    const int64_t length = c_.shape_of(value)[static_cast<size_t>(*axis)];
    if (turns_ >= 0 && length != turns_)
      return c_.fail("scanned operands of {} and {} steps", turns_, length);
    turns_ = length;
    operands_.push_back({value, *axis, direction});
    return ok_status();
  }

  Status take_turn(int64_t turn) {
    std::vector<ValueId> arguments = values_;
    for (const Operand& operand : operands_) {
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
    for (const Operand& operand : operands_) {
      Shape shape = c_.shape_of(operand.value);
      shape.erase(shape.begin() + operand.axis);
      arguments.push_back(c_.stand_in(c_.dtype_of(operand.value), shape));
    }
    return arguments;
  }

  // Joins the rows of a result, each of which is like `one`.
  Status set_rows(size_t i, ValueId one) {
    HONE_ASSIGN_OR_RETURN(const int64_t given, entry(c_, "scan_output_axes", i));
    HONE_ASSIGN_OR_RETURN(const int64_t direction, entry(c_, "scan_output_directions", i));
    const auto axis = normalize_axis(given, c_.rank_of(one) + 1);
    if (!axis) return c_.fail("scan_output_axes has {}", given);
    const size_t at = values_.size() + i;
    if (turns_ == 0) {
      c_.result(at, no_rows(c_, one, *axis));
      return ok_status();
    }
    if (direction != 0) std::reverse(rows_[i].begin(), rows_[i].end());
    for (ValueId& row : rows_[i]) row = c_.add("Unsqueeze", {row, c_.integers({*axis})});
    c_.result(at, c_.add("Concat", rows_[i], {{"axis", *axis}}));
    return ok_status();
  }

  ExpandContext& c_;
  const SubgraphBody& body_;
  std::vector<ValueId> values_;  // what a step hands to the next one
  std::vector<Operand> operands_;
  std::vector<std::vector<ValueId>> rows_;  // results of all steps
  int64_t turns_ = -1;
};

Status expand_scan(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(check_body(c, "body"));
  return ScanNode(c).run();
}

}  // namespace

std::span<const Op> control_flow_ops() {
  constexpr int kAny = 100'000;  // captured values are operands, too
  static const Op ops[] = {
      expanded_op("If", 1, {1, kAny, kAny}, "then_branch:g else_branch:g", expand_if),
      expanded_op("Loop", 1, {0, kAny, kAny}, "body:g", expand_loop),
      expanded_op("Scan", 9, {1, kAny, kAny},
                  "body:g num_scan_inputs:i scan_input_axes:is scan_input_directions:is "
                  "scan_output_axes:is scan_output_directions:is",
                  expand_scan),
  };
  return ops;
}

}  // namespace hone::graph
