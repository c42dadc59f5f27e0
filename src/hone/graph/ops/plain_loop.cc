#include "hone/graph/ops/plain_loop.h"

#include <algorithm>
#include <set>

#include "hone/graph/aggregates.h"
#include "hone/graph/integer_at.h"

namespace hone::graph {
namespace {

constexpr size_t kFirstCarried = 2;  // operands before it: the number of turns, the condition

// Finds what computes the values of a body.
class BodyValues {
 public:
  explicit BodyValues(const SubgraphBody& body) : body_(body), producers_(body.names.size(), -1) {
    for (size_t n = 0; n < body.nodes.size(); ++n) {
      for (const ValueId out : body.nodes[n].outputs) {
        if (out != kNoValue) producers_[static_cast<size_t>(out)] = static_cast<int>(n);
      }
    }
  }
  // Returns the node that computes a value, or null.
  [[nodiscard]] const Node* producer(int local) const {
    const int n = producers_[static_cast<size_t>(local)];
    return n < 0 ? nullptr : &body_.nodes[static_cast<size_t>(n)];
  }
  // Returns the value that this one is the same as.
  [[nodiscard]] int source(int local) const {
    const Node* node = producer(local);
    return node != nullptr && node->type == "Identity" ? source(node->inputs[0]) : local;
  }
  // Returns a constant of the body, or one of the graph around it, before it was converted.
  [[nodiscard]] const Tensor* constant(const ExpandContext& c, int local) const {
    const int from = source(local);
    for (const auto& [known, tensor] : body_.constants) {
      if (known == from) return &tensor;
    }
    for (const auto& [known, operand] : body_.captures) {
      if (known == from) return c.constant_of(c.input(operand));
    }
    const Node* node = producer(from);
    if (node == nullptr) return nullptr;
    if (node->type == "Cast" || node->type == "CastLike") return constant(c, node->inputs[0]);
    return node->type == "Constant" ? node->attributes.find<Tensor>("value") : nullptr;
  }
  // Returns the number of the carried value that a value is in this turn; nullopt for another one.
  [[nodiscard]] std::optional<size_t> carried(int local) const {
    const auto first = body_.inputs.begin() + kFirstCarried;
    const auto found = std::find(first, body_.inputs.end(), source(local));
    return found == body_.inputs.end() ? std::nullopt
                                       : std::optional(static_cast<size_t>(found - first));
  }
  // Returns the value of the graph around it that a value is in all turns, or kNoValue.
  [[nodiscard]] ValueId fixed(const ExpandContext& c, int local) const {
    const int from = source(local);
    for (const auto& [known, operand] : body_.captures) {
      if (known == from) return c.input(operand);
    }
    const auto at = carried(from);
    return at && source(body_.outputs[1 + *at]) == from ? c.input(kFirstCarried + *at) : kNoValue;
  }

 private:
  const SubgraphBody& body_;
  std::vector<int> producers_;
};

// The condition `initial + (t + 1) * step < limit` after turn t, or `<=`.
struct Counter {
  ValueId initial = kNoValue, limit = kNoValue;
  int64_t step = 1;
  bool or_equal = false;
};

bool is_count(const ExpandContext& c, ValueId id) {
  return id != kNoValue && aggregate_of(id) == nullptr &&
         (c.dtype_of(id) == DType::kI64 || c.dtype_of(id) == DType::kI32) &&
         num_elements(c.shape_of(id)) == 1;
}

// The step by which the next value of a carried one is larger; 0 if that is not known.
int64_t step_of(const ExpandContext& c, const BodyValues& values, const Node* next,
                size_t carried) {
  if (next == nullptr || next->type != "Add") return 0;
  for (const size_t operand : {0, 1}) {
    const Tensor* step = values.constant(c, next->inputs[1 - operand]);
    if (values.carried(next->inputs[operand]) != carried || step == nullptr) continue;
    if (step->size() == 1 && !is_float(step->dtype())) return integer_at(*step, 0);
  }
  return 0;
}

std::optional<Counter> counter_of(const ExpandContext& c, const SubgraphBody& body) {
  const BodyValues values(body);
  const Node* condition = values.producer(values.source(body.outputs[0]));
  if (condition == nullptr || condition->inputs.size() != 2) return std::nullopt;
  const bool less = condition->type == "Less" || condition->type == "LessOrEqual";
  const bool greater = condition->type == "Greater" || condition->type == "GreaterOrEqual";
  if (!less && !greater) return std::nullopt;
  const int count = values.source(condition->inputs[less ? 0 : 1]);
  Counter counter;
  counter.or_equal = condition->type.ends_with("OrEqual");
  counter.limit = values.fixed(c, condition->inputs[less ? 1 : 0]);
  for (size_t i = 0; kFirstCarried + i < body.inputs.size(); ++i) {
    if (values.source(body.outputs[1 + i]) != count) continue;
    counter.step = step_of(c, values, values.producer(count), i);
    counter.initial = c.input(kFirstCarried + i);
    if (counter.step > 0 && is_count(c, counter.initial) && is_count(c, counter.limit))
      return counter;
  }
  return std::nullopt;
}

// The condition is known before the first turn, which takes place even if the counter has reached
// the limit.
ValueId turns_of(ExpandContext& c, const Counter& counter) {
  const auto count = [&](ValueId id) { return c.cast(c.reshape(id, {}), DType::kI64); };
  ValueId turns = c.binary("Sub", count(counter.limit), count(counter.initial));
  const int64_t round_up = counter.or_equal ? counter.step : counter.step - 1;
  if (round_up != 0) turns = c.binary("Add", turns, static_cast<double>(round_up));
  if (counter.step != 1) turns = c.binary("Div", turns, static_cast<double>(counter.step));
  turns = c.binary("Max", turns, 1.0);
  return c.has(0) ? c.binary("Min", count(c.input(0)), turns) : turns;
}

// What a body appends in each turn to the sequence that it carries as value i; nullopt if it does
// anything else with that.
std::optional<int> appended_part(const SubgraphBody& body, size_t i) {
  const BodyValues values(body);
  const Node* insert = values.producer(values.source(body.outputs[1 + i]));
  if (insert == nullptr || insert->type != "SequenceInsert" || insert->has_input(2) ||
      values.carried(insert->inputs[0]) != i)
    return std::nullopt;
  // The sequence before it, and with it, under all names; each is read once.
  for (const int first : {body.inputs[kFirstCarried + i], insert->outputs[0]}) {
    int readers = 0;
    const auto count = [&](int local) {
      if (local != kNoValue && values.source(local) == first) ++readers;
    };
    for (const Node& node : body.nodes) {
      for (const ValueId in : node.inputs) {
        if (node.type != "Identity") count(in);
      }
    }
    for (const int out : body.outputs) count(out);
    if (readers != 1) return std::nullopt;
  }
  return insert->inputs[1];
}

bool is_empty_sequence(ValueId id) {
  const Aggregate* found = id == kNoValue ? nullptr : aggregate_of(id);
  return found != nullptr && !found->optional && found->parts.empty() && found->stacked == kNoValue;
}

// Takes the sequence that is carried as value i out of a body, which makes `part` a row instead.
void stack_parts(Node& node, SubgraphBody& body, size_t i, int part) {
  const auto place = static_cast<long>(i);
  std::set<int> gone = {body.inputs[kFirstCarried + i]};
  std::vector<Node> nodes;
  for (Node& inner : body.nodes) {
    const bool hands_on = inner.type == "Identity" || inner.type == "SequenceInsert";
    if (hands_on && gone.contains(inner.inputs[0]))
      gone.insert(inner.outputs[0]);
    else
      nodes.push_back(std::move(inner));
  }
  body.nodes = std::move(nodes);
  body.inputs.erase(body.inputs.begin() + kFirstCarried + place);
  body.outputs.erase(body.outputs.begin() + 1 + place);
  body.outputs.push_back(part);
  node.inputs.erase(node.inputs.begin() + kFirstCarried + place);
  for (auto& [local, operand] : body.captures) --operand;
}

// Makes the condition of a body one that always holds.
void go_on(SubgraphBody& body) {
  Tensor yes(DType::kBool, {});
  yes.set(0, 1);
  body.outputs[0] = static_cast<int>(body.names.size());
  body.names.emplace_back("go_on");
  body.constants.emplace_back(body.outputs[0], std::move(yes));
}

// Gives a node results for those of the given one that are wanted. Those of `stacked`, in this
// order, are the last rows.
void set_results(ExpandContext& c, PlainLoop& made, size_t carried, size_t rows,
                 const std::vector<size_t>& stacked) {
  made.results.resize(carried + rows);
  made.stacks.assign(carried + rows, false);
  size_t next = 0;
  for (size_t r = 0; r < carried + rows; ++r) {
    const auto place = std::find(stacked.begin(), stacked.end(), r);
    made.stacks[r] = place != stacked.end();
    made.results[r] = made.stacks[r] ? carried + rows - stacked.size() +
                                           static_cast<size_t>(place - stacked.begin())
                                     : next++;
  }
  made.node.outputs.assign(carried + rows, kNoValue);
  for (size_t r = 0; r < carried + rows; ++r) {
    if (!c.wants(r)) continue;
    const std::string name = fmt::format("{}.{}", c.node().name, r);
    made.node.outputs[made.results[r]] = c.graph().add_value(name, DType::kF32, {});
  }
}

}  // namespace

std::optional<PlainLoop> plain_loop(ExpandContext& c) {
  const SubgraphBody& given = *c.attributes().find<Subgraph>("body")->body;
  const size_t carried = given.inputs.size() - kFirstCarried;
  const std::optional<Counter> counter = counter_of(c, given);
  std::vector<size_t> stacked;
  for (size_t i = 0; i < carried; ++i) {
    if (is_empty_sequence(c.input(kFirstCarried + i)) && appended_part(given, i))
      stacked.push_back(i);
  }
  if (!counter && stacked.empty()) return std::nullopt;
  PlainLoop made{.node = c.node(), .results = {}, .stacks = {}};
  SubgraphBody body = given;
  if (counter) {
    made.node.inputs[0] = turns_of(c, *counter);
    go_on(body);
  }
  for (size_t k = 0; k < stacked.size(); ++k)
    stack_parts(made.node, body, stacked[k] - k, *appended_part(given, stacked[k]));
  made.node.attributes.set("body", Subgraph{std::make_shared<const SubgraphBody>(std::move(body))});
  set_results(c, made, carried, given.outputs.size() - 1 - carried, stacked);
  return made;
}

}  // namespace hone::graph
