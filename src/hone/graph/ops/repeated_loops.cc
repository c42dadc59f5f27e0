#include "hone/graph/ops/repeated_loops.h"

#include <algorithm>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/carried_values.h"
#include "hone/graph/ops/plain_loop.h"
#include "hone/graph/ops/scan_operands.h"
#include "hone/graph/ops/stacked_rows.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// What is expected of a loop whose number of turns is known at run time only.
constexpr int64_t kExpectedTurns = 16;
// A loop of more turns would not end.
constexpr int64_t kMostKnownTurns = 1'000'000'000;
// What a carried value that grows may take after the last turn.
constexpr int64_t kMostGrownBytes = int64_t{1} << 30;

// How often a loop is built anew, as more of its carried values change than was known.
constexpr int kMostTries = 4;

// The turns of a Loop: at most so many, and whether a run may want more.
struct Turns {
  int64_t most = 0;
  bool bounded = false;  // by the model itself
  bool fixed = false;    // a constant
};

Result<Turns> turns_of(const ExpandContext& c) {
  const int64_t limit = c.graph().max_turns;
  if (!c.has(0)) return Turns{limit};
  if (num_elements(c.shape(0)) != 1 || is_float(c.dtype(0)))
    return c.fail("a number of turns {} {}, expected one integer", dtype_name(c.dtype(0)),
                  to_string(c.shape(0)));
  const Tensor* upper = c.upper_of(c.input(0));
  if (upper == nullptr) return Turns{limit};
  return Turns{std::max<int64_t>(integer_at(*upper, 0), 0), true,
               c.constant_of(c.input(0)) != nullptr};
}

// The shapes that values which grow have after the last turn.
Status set_largest_shapes(const ExpandContext& c, int64_t turns, std::vector<Growth>& growth) {
  const SubgraphBody& body = *c.attributes().find<Subgraph>("body")->body;
  for (size_t i = 0; i < growth.size(); ++i) {
    if (growth[i].step.empty() || !growth[i].most.empty()) continue;
    const Value& initial = c.graph().value(c.input(2 + i));
    Shape most = initial.shape;
    for (size_t d = 0; d < most.size(); ++d) {
      const int64_t step = growth[i].step[d];
      const bool is_huge = step > 0 && turns > kMostGrownBytes / step;
      most[d] += is_huge ? kMostGrownBytes : turns * step;
    }
    if (is_valid(most) && num_elements(most) == 0) {
      growth[i] = {};
      continue;
    }
    if (!is_valid(most) || num_elements(most) * dtype_bytes(initial.dtype) >= kMostGrownBytes)
      return c.unsupported(
          "the carried value '{}' grows from {} by {} elements in a turn, and {} turns need more than "
          "{} MiB: expected fewer turns (--max-turns)",
          body.names[static_cast<size_t>(body.inputs[2 + i])], to_string(initial.shape),
          to_string(growth[i].step), turns, kMostGrownBytes >> 20);
    growth[i].most = std::move(most);
  }
  return ok_status();
}

std::string too_many(const ExpandContext& c, int64_t most) {
  return fmt::format(
      "{} goes on after {} turns, the most that the model was compiled for: expected a condition "
      "that ends it before, or a larger limit (--max-turns)",
      name_and_type(c.node()), most);
}

bool known_to_be(const ExpandContext& c, ValueId condition, bool value) {
  const Tensor* tensor = c.constant_of(condition);
  return tensor != nullptr && tensor->size() == 1 && (tensor->at(0) != 0) == value;
}

Status check_condition(const ExpandContext& c, const ExpandContext& where, ValueId condition) {
  if (where.dtype_of(condition) == DType::kBool && num_elements(where.shape_of(condition)) == 1)
    return ok_status();
  return c.fail("a condition {} {}", dtype_name(where.dtype_of(condition)),
                to_string(where.shape_of(condition)));
}

// Builds the loop, but for what becomes of its results.
class RepeatedLoop {
 public:
  // The values that grow do so as `growth` says, which has an element for each, or is empty. The
  // last `parts` results are parts of sequences.
  RepeatedLoop(ExpandContext& c, Turns turns, const std::vector<Growth>& growth, size_t parts)
      : c_(c),
        body_(*c.attributes().find<Subgraph>("body")->body),
        turns_(turns),
        growth_(growth),
        parts_(parts),
        loop_(c, turns.most),
        values_(c, loop_),
        rows_(c, loop_) {}

  // After a run() that failed: by how much each carried value grows, if that was not known; empty
  // if that was not what failed, or the number of turns is known, so that unrolled turns have
  // shapes.
  [[nodiscard]] const std::vector<Growth>& growth() const { return found_; }

  Status run() {
    const size_t carried = body_.inputs.size() - 2;
    std::vector<ValueId> arguments = {loop_.turn(), loop_.body().scalar(DType::kBool, 1)};
    for (size_t i = 0; i < carried; ++i) {
      if (!c_.has(2 + i)) return c_.fail("operand {} is missing", 2 + i);
      const std::string& name = body_.names[static_cast<size_t>(body_.inputs[2 + i])];
      const Growth growth = growth_.empty() ? Growth() : growth_[i];
      HONE_ASSIGN_OR_RETURN(const ValueId value, values_.add(c_.input(2 + i), name, growth));
      arguments.push_back(value);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> results, loop_.inline_body(body_, arguments));
    HONE_RETURN_IF_ERROR(check_condition(c_, loop_.body(), results[0]));
    if (!(turns_.fixed && goes_on_always(results[0])))
      found_ =
          values_.growth({results.begin() + 1, results.begin() + 1 + static_cast<long>(carried)});
    const auto first_row = results.begin() + 1 + static_cast<long>(carried);
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> next,
                          values_.next({results.begin() + 1, first_row}));
    for (size_t at = 1 + carried; at < results.size(); ++at) {
      if (!c_.wants(at - 1)) {
        skipped_.push_back(at - 1 - carried);
        continue;
      }
      HONE_RETURN_IF_ERROR(rows_.add(body_, at, results[at], false));
      if (at + parts_ >= results.size() && rows_.is_checked())
        return c_.unsupported(
            "a loop that is not unrolled and appends tensors {} to a sequence, whose shape depends "
            "on data: expected one shape",
            to_string(loop_.body().shape_of(results[at])));
    }
    rows_.add_next(next);
    HONE_ASSIGN_OR_RETURN(const LoopResults made, finish(results[0], std::move(next)));
    values_.declare(made);
    declare_rows(made, carried, static_cast<size_t>(results.end() - first_row));
    return c_.status();
  }

 private:
  // Returns whether only the number of turns ends the loop.
  [[nodiscard]] bool goes_on_always(ValueId condition) {
    return (!c_.has(1) || known_to_be(c_, c_.input(1), true)) &&
           known_to_be(loop_.body(), condition, true);
  }

  Result<LoopResults> finish(ValueId condition, std::vector<ValueId> next) {
    ValueId go = c_.has(1) ? c_.input(1) : kNoValue;
    if (go != kNoValue) HONE_RETURN_IF_ERROR(check_condition(c_, c_, go));
    const bool always = goes_on_always(condition);
    // A number that stands for "until the condition is false" bounds nothing.
    const int64_t limit = turns_.fixed && always ? kMostKnownTurns : c_.graph().max_turns;
    if (turns_.most > limit) {
      turns_ = {c_.graph().max_turns};
      loop_.limit_turns(turns_.most);
    }
    is_fixed_ = turns_.fixed && always;
    if (go == kNoValue) go = c_.scalar(DType::kBool, 1);
    LoopEnd end{.turns = turns_.fixed || !c_.has(0) ? kNoValue : c_.input(0)};
    if (!turns_.bounded) end.beyond = too_many(c_, turns_.most);
    end.expected_turns =
        static_cast<double>(is_fixed_ ? turns_.most : std::min(turns_.most, kExpectedTurns));
    return loop_.finish(end, go, always ? kNoValue : condition, std::move(next), rows_.rows());
  }

  // Stacked rows are as many as there were turns.
  void declare_rows(const LoopResults& made, size_t carried, size_t all) {
    size_t next = 0;
    for (size_t i = 0; i < all; ++i) {
      if (std::find(skipped_.begin(), skipped_.end(), i) != skipped_.end()) continue;
      const ValueId stacked = made.stacked[next];
      const ExtentPart count =
          is_fixed_ ? ExtentPart{kNoValue, c_.shape_of(stacked)[0]} : ExtentPart{made.turns, 0};
      const ValueId extents = join_extents(c_, joined({count}, rows_.shape(made, next++)));
      c_.result(carried + i, with_extents(c_, stacked, extents));
    }
  }

  ExpandContext& c_;
  const SubgraphBody& body_;
  Turns turns_;
  const std::vector<Growth> growth_;
  std::vector<Growth> found_;
  const size_t parts_;
  LoopBuilder loop_;
  CarriedValues values_;
  RepeatedRows rows_;
  std::vector<size_t> skipped_;  // rows that nobody wants
  bool is_fixed_ = false;        // the number of turns is a constant
};

// Returns stacked rows of which a run has `count`, the first ones of the result, backwards.
ValueId backwards(ExpandContext& c, ValueId stacked, ValueId count) {
  const ValueId last = c.reshape(c.binary("Sub", count, 1.0), {});
  const ValueId places = c.binary("Sub", last, places_along(c, {c.shape_of(stacked)[0]}, 0));
  return c.add("Gather", {stacked, c.binary("Max", places, 0.0)});
}

Status run_scan(ExpandContext& c) {
  const SubgraphBody& body = *c.attributes().find<Subgraph>("body")->body;
  HONE_ASSIGN_OR_RETURN(const ScanOperands operands, scan_operands(c, body));
  LoopBuilder loop(c, operands.turns);
  ExpandContext& inner = loop.body();
  CarriedValues values(c, loop);
  std::vector<ValueId> arguments;
  for (const ValueId state : operands.states) {
    const std::string& name = body.names[static_cast<size_t>(body.inputs[arguments.size()])];
    HONE_ASSIGN_OR_RETURN(const ValueId value, values.add(state, name));
    arguments.push_back(value);
  }
  const bool decided = operands.count != kNoValue;
  for (const ScanOperand& operand : operands.scanned) {
    const ValueId last =
        decided ? inner.binary("Sub", inner.reshape(loop.capture(operands.count), {}), 1.0)
                : inner.scalar(DType::kI64, static_cast<double>(operands.turns - 1));
    const ValueId at =
        operand.direction != 0 ? inner.binary("Sub", last, loop.turn()) : loop.turn();
    arguments.push_back(
        inner.add("Gather", {loop.capture(operand.value), at}, {{"axis", operand.axis}}));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> results, loop.inline_body(body, arguments));
  const size_t states = operands.states.size();
  const auto first_row = results.begin() + static_cast<long>(states);
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> next, values.next({results.begin(), first_row}));
  RepeatedRows rows(c, loop);
  for (size_t at = states; at < results.size(); ++at) {
    HONE_ASSIGN_OR_RETURN(const int64_t direction,
                          scan_entry(c, "scan_output_directions", at - states));
    HONE_RETURN_IF_ERROR(rows.add(body, at, results[at], direction != 0 && !decided));
  }
  rows.add_next(next);
  const LoopEnd end{.turns = operands.count, .expected_turns = static_cast<double>(operands.turns)};
  HONE_ASSIGN_OR_RETURN(const LoopResults made,
                        loop.finish(end, kNoValue, kNoValue, std::move(next), rows.rows()));
  values.declare(made);
  for (size_t i = 0; i < rows.rows().size(); ++i) {
    const int64_t rank = c.rank_of(made.stacked[i]);
    HONE_ASSIGN_OR_RETURN(const int64_t given, scan_entry(c, "scan_output_axes", i));
    const auto axis = normalize_axis(given, rank);
    if (!axis) return c.fail("scan_output_axes has {}", given);
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < rank; ++d) perm.push_back(d < *axis ? d + 1 : d == *axis ? 0 : d);
    ValueId stacked = made.stacked[i];
    HONE_ASSIGN_OR_RETURN(const int64_t direction, scan_entry(c, "scan_output_directions", i));
    if (decided && direction != 0) stacked = backwards(c, stacked, operands.count);
    const ExtentPart count =
        decided ? ExtentPart{operands.count, 0} : ExtentPart{kNoValue, c.shape_of(stacked)[0]};
    stacked = with_extents(c, stacked, join_extents(c, joined({count}, rows.shape(made, i))));
    c.result(states + i, c.transpose(stacked, perm));
  }
  return c.status();
}

}  // namespace

Status check_loop_results(const ExpandContext& c, const SubgraphBody& body) {
  if (c.num_outputs() < body.outputs.size()) return ok_status();
  return c.fail("{} results, expected {} at most, as its body has {} and the first is a condition",
                c.num_outputs(), body.outputs.size() - 1, body.outputs.size());
}

namespace {

// The last `parts` results are parts of sequences.
Status run_loop(ExpandContext& c, size_t parts) {
  HONE_ASSIGN_OR_RETURN(Turns turns, turns_of(c));
  std::vector<Growth> growth;
  const auto build = [&](ExpandContext& apart) {
    RepeatedLoop loop(apart, turns, growth, parts);
    const Status status = loop.run();
    if (!status.ok()) growth = loop.growth();
    return status;
  };
  Status status = LoopBuilder::build_apart(c, build);
  // What is computed of a value that grows may have another shape in each turn, too.
  for (int tries = 0; tries < kMostTries && status.code() == Code::kUnsupported; ++tries) {
    if (growth.empty()) break;
    if (turns.most > c.graph().max_turns) turns = {c.graph().max_turns};
    HONE_RETURN_IF_ERROR(set_largest_shapes(c, turns.most, growth));
    status = LoopBuilder::build_apart(c, build);
  }
  return status;
}

// Builds a loop in plain terms, and from its results those of the node.
Status run_plain_loop(ExpandContext& c, const PlainLoop& plain) {
  std::vector<Node> nodes;
  {
    const NodesBefore before(c.graph(), c.nodes());
    ExpandContext inside(c.graph(), plain.node, nodes);
    const auto parts = std::count(plain.stacks.begin(), plain.stacks.end(), true);
    HONE_RETURN_IF_ERROR(run_loop(inside, static_cast<size_t>(parts)));
    HONE_RETURN_IF_ERROR(inside.status());
  }
  LoopBuilder::add_nodes(c, std::move(nodes));
  for (size_t i = 0; i < plain.results.size(); ++i) {
    if (!c.wants(i)) continue;
    const ValueId value = plain.node.outputs[plain.results[i]];
    c.result(i, plain.stacks[i]
                    ? add_aggregate(c, {.dtype = c.dtype_of(value), .parts = {}, .stacked = value})
                    : value);
  }
  return c.status();
}

}  // namespace

Status repeat_loop(ExpandContext& c) {
  const SubgraphBody& body = *c.attributes().find<Subgraph>("body")->body;
  if (body.inputs.size() < 2 || body.outputs.size() + 1 < body.inputs.size())
    return c.fail("a body with {} inputs and {} results", body.inputs.size(), body.outputs.size());
  HONE_RETURN_IF_ERROR(check_loop_results(c, body));
  return LoopBuilder::build_apart(c, [](ExpandContext& apart) {
    const std::optional<PlainLoop> plain = plain_loop(apart);
    HONE_RETURN_IF_ERROR(apart.status());
    return plain ? run_plain_loop(apart, *plain) : run_loop(apart, 0);
  });
}

Status repeat_scan(ExpandContext& c) { return LoopBuilder::build_apart(c, run_scan); }

}  // namespace hone::graph
