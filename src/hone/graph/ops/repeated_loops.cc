#include "hone/graph/ops/repeated_loops.h"

#include <algorithm>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/loop_builder.h"

namespace hone::graph {
namespace {

// What is expected of a loop whose number of turns is known at run time only.
constexpr int64_t kExpectedTurns = 16;
// A loop of more turns would not end.
constexpr int64_t kMostKnownTurns = 1'000'000'000;

// The values that a body carries from turn to turn. One whose shape depends on data is carried with
// its extents, and one without elements is a constant.
class CarriedValues {
 public:
  CarriedValues(ExpandContext& c, LoopBuilder& loop) : c_(c), loop_(loop) {}

  // Returns the value in the body.
  Result<ValueId> add(ValueId initial) {
    if (aggregate_of(initial) != nullptr)
      return c_.unsupported("a loop that is not unrolled and carries a sequence");
    Slot slot{.initial = initial, .extents = c_.extents_of(initial)};
    slot.empty = num_elements(c_.shape_of(initial)) == 0;
    slot.inner = slot.empty ? loop_.capture(initial) : loop_.carry(initial);
    if (slot.extents != kNoValue && !slot.empty)
      loop_.body().set_extents(slot.inner, loop_.carry(slot.extents));
    slots_.push_back(slot);
    return slot.inner;
  }

  // Takes what the values are in the next turn, and returns these as the builder wants them.
  Result<std::vector<ValueId>> next(const std::vector<ValueId>& values) {
    ExpandContext& body = loop_.body();
    std::vector<ValueId> list;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      if (slot.empty && body.shape_of(values[i]) != c_.shape_of(slot.initial))
        return c_.unsupported(
            "a loop that is not unrolled and whose carried value {} grows from {} to {}: expected "
            "one shape in all turns",
            i, to_string(c_.shape_of(slot.initial)), to_string(body.shape_of(values[i])));
      if (slot.empty) continue;
      if (slot.extents == kNoValue) {
        list.push_back(values[i]);
        continue;
      }
      list.push_back(without_extents(body, values[i]));
      list.push_back(actual_extents(body, values[i]));
    }
    return list;
  }

  // Declares the results of the node, from those of the loop.
  void declare(const LoopResults& results) {
    size_t next = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].empty) {
        c_.result(i, slots_[i].initial);
        continue;
      }
      ValueId value = results.carried[next++];
      if (slots_[i].extents != kNoValue) value = with_extents(c_, value, results.carried[next++]);
      c_.result(i, value);
    }
  }

 private:
  struct Slot {
    ValueId initial, extents, inner = kNoValue;
    bool empty = false;
  };
  ExpandContext& c_;
  LoopBuilder& loop_;
  std::vector<Slot> slots_;
};

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
  const int64_t most =
      upper->dtype() == DType::kI64 ? upper->as<int64_t>()[0] : static_cast<int64_t>(upper->at(0));
  return Turns{std::max<int64_t>(most, 0), true, c.constant_of(c.input(0)) != nullptr};
}

std::string too_many(const ExpandContext& c, int64_t most) {
  return fmt::format(
      "node '{}' ({}) goes on after {} turns, the most that the model was compiled for: expected "
      "a condition that ends it before, or a larger limit (--max-turns)",
      c.node().name, c.node().type, most);
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
  RepeatedLoop(ExpandContext& c, Turns turns)
      : c_(c),
        body_(*c.attributes().find<Subgraph>("body")->body),
        turns_(turns),
        loop_(c, turns.most),
        values_(c, loop_) {}

  Status run() {
    const size_t carried = body_.inputs.size() - 2;
    std::vector<ValueId> arguments = {loop_.turn(), loop_.body().scalar(DType::kBool, 1)};
    for (size_t i = 0; i < carried; ++i) {
      if (!c_.has(2 + i)) return c_.fail("operand {} is missing", 2 + i);
      HONE_ASSIGN_OR_RETURN(const ValueId value, values_.add(c_.input(2 + i)));
      arguments.push_back(value);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> results, loop_.inline_body(body_, arguments));
    HONE_RETURN_IF_ERROR(check_condition(c_, loop_.body(), results[0]));
    const auto first_row = results.begin() + 1 + static_cast<long>(carried);
    HONE_ASSIGN_OR_RETURN(std::vector<ValueId> next,
                          values_.next({results.begin() + 1, first_row}));
    std::vector<LoopRow> rows;
    for (auto row = first_row; row != results.end(); ++row) {
      if (c_.wants(carried + rows.size() + skipped_.size()))
        rows.push_back({*row});
      else
        skipped_.push_back(static_cast<size_t>(row - first_row));
    }
    HONE_ASSIGN_OR_RETURN(const LoopResults made, finish(results[0], std::move(next), rows));
    values_.declare(made);
    declare_rows(made, carried, static_cast<size_t>(results.end() - first_row));
    return c_.status();
  }

 private:
  Result<LoopResults> finish(ValueId condition, std::vector<ValueId> next,
                             const std::vector<LoopRow>& rows) {
    ValueId go = c_.has(1) ? c_.input(1) : kNoValue;
    if (go != kNoValue) HONE_RETURN_IF_ERROR(check_condition(c_, c_, go));
    const bool always =
        (go == kNoValue || known_to_be(c_, go, true)) && known_to_be(loop_.body(), condition, true);
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
    return loop_.finish(end, go, always ? kNoValue : condition, std::move(next), rows);
  }

  // Stacked rows are as many as there were turns.
  void declare_rows(const LoopResults& made, size_t carried, size_t all) {
    size_t next = 0;
    for (size_t i = 0; i < all; ++i) {
      if (std::find(skipped_.begin(), skipped_.end(), i) != skipped_.end()) continue;
      ValueId stacked = made.stacked[next++];
      if (!is_fixed_) {
        Shape rest = c_.shape_of(stacked);
        rest.erase(rest.begin());
        stacked = with_extents(
            c_, stacked, c_.add("Concat", {made.turns, c_.integers(rest)}, {{"axis", int64_t{0}}}));
      }
      c_.result(carried + i, stacked);
    }
  }

  ExpandContext& c_;
  const SubgraphBody& body_;
  Turns turns_;
  LoopBuilder loop_;
  CarriedValues values_;
  std::vector<size_t> skipped_;  // rows that nobody wants
  bool is_fixed_ = false;        // the number of turns is a constant
};

Status run_scan(ExpandContext& c) {
  const SubgraphBody& body = *c.attributes().find<Subgraph>("body")->body;
  HONE_ASSIGN_OR_RETURN(const ScanOperands operands, scan_operands(c, body));
  LoopBuilder loop(c, operands.turns);
  ExpandContext& inner = loop.body();
  CarriedValues values(c, loop);
  std::vector<ValueId> arguments;
  for (const ValueId state : operands.states) {
    HONE_ASSIGN_OR_RETURN(const ValueId value, values.add(state));
    arguments.push_back(value);
  }
  for (const ScanOperand& operand : operands.scanned) {
    const ValueId last = inner.scalar(DType::kI64, static_cast<double>(operands.turns - 1));
    const ValueId at =
        operand.direction != 0 ? inner.binary("Sub", last, loop.turn()) : loop.turn();
    arguments.push_back(
        inner.add("Gather", {loop.capture(operand.value), at}, {{"axis", operand.axis}}));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> results, loop.inline_body(body, arguments));
  const size_t states = operands.states.size();
  const auto first_row = results.begin() + static_cast<long>(states);
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> next, values.next({results.begin(), first_row}));
  std::vector<LoopRow> rows;
  for (auto row = first_row; row != results.end(); ++row) {
    HONE_ASSIGN_OR_RETURN(const int64_t direction,
                          scan_entry(c, "scan_output_directions", rows.size()));
    rows.push_back({*row, direction != 0});
  }
  const LoopEnd end{.expected_turns = static_cast<double>(operands.turns)};
  HONE_ASSIGN_OR_RETURN(const LoopResults made,
                        loop.finish(end, kNoValue, kNoValue, std::move(next), rows));
  values.declare(made);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t rank = c.rank_of(made.stacked[i]);
    HONE_ASSIGN_OR_RETURN(const int64_t given, scan_entry(c, "scan_output_axes", i));
    const auto axis = normalize_axis(given, rank);
    if (!axis) return c.fail("scan_output_axes has {}", given);
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < rank; ++d) perm.push_back(d < *axis ? d + 1 : d == *axis ? 0 : d);
    c.result(states + i, c.transpose(made.stacked[i], perm));
  }
  return c.status();
}

}  // namespace

Status check_loop_results(const ExpandContext& c, const SubgraphBody& body) {
  if (c.num_outputs() < body.outputs.size()) return ok_status();
  return c.fail("{} results, expected {} at most, as its body has {} and the first is a condition",
                c.num_outputs(), body.outputs.size() - 1, body.outputs.size());
}

Status repeat_loop(ExpandContext& c) {
  const SubgraphBody& body = *c.attributes().find<Subgraph>("body")->body;
  if (body.inputs.size() < 2 || body.outputs.size() + 1 < body.inputs.size())
    return c.fail("a body with {} inputs and {} results", body.inputs.size(), body.outputs.size());
  HONE_RETURN_IF_ERROR(check_loop_results(c, body));
  HONE_ASSIGN_OR_RETURN(const Turns turns, turns_of(c));
  return LoopBuilder::build_apart(
      c, [&](ExpandContext& apart) { return RepeatedLoop(apart, turns).run(); });
}

Status repeat_scan(ExpandContext& c) { return LoopBuilder::build_apart(c, run_scan); }

Result<int64_t> scan_entry(const ExpandContext& c, const char* name, size_t i) {
  const std::vector<int64_t> list = c.attributes().integers(name);
  if (!list.empty() && i >= list.size())
    return c.fail("attribute '{}' has {} entries", name, list.size());
  return list.empty() ? 0 : list[i];
}

Result<ScanOperands> scan_operands(const ExpandContext& c, const SubgraphBody& body) {
  const int64_t scanned = c.attributes().integer("num_scan_inputs", 0);
  const auto inputs = static_cast<int64_t>(body.inputs.size());
  const int64_t states = inputs - scanned;
  if (scanned < 1 || states < 0 || std::ssize(body.outputs) < states)
    return c.fail("{} scanned operands, and a body with {} inputs and {} results", scanned, inputs,
                  body.outputs.size());
  if (c.num_outputs() > body.outputs.size())
    return c.fail("{} results, expected {} at most, as its body has so many", c.num_outputs(),
                  body.outputs.size());
  ScanOperands operands;
  for (int64_t i = 0; i < inputs; ++i) {
    if (!c.has(static_cast<size_t>(i))) return c.fail("operand {} is missing", i);
    const ValueId value = c.input(static_cast<size_t>(i));
    if (i < states) {
      operands.states.push_back(value);
      continue;
    }
    const auto k = static_cast<size_t>(i - states);
    HONE_ASSIGN_OR_RETURN(const int64_t given, scan_entry(c, "scan_input_axes", k));
    HONE_ASSIGN_OR_RETURN(const int64_t direction, scan_entry(c, "scan_input_directions", k));
    const auto axis = normalize_axis(given, c.rank_of(value));
    if (!axis) return c.fail("scan_input_axes has {}", given);
    const int64_t length = c.shape_of(value)[static_cast<size_t>(*axis)];
    if (operands.turns >= 0 && length != operands.turns)
      return c.fail("scanned operands of {} and {} steps", operands.turns, length);
    operands.turns = length;
    operands.scanned.push_back({value, *axis, direction});
  }
  return operands;
}

}  // namespace hone::graph
