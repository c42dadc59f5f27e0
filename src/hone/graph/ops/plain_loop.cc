#include "hone/graph/ops/plain_loop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hone/graph/aggregates.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/ops/type_code.h"

namespace hone::graph {
namespace {

constexpr size_t kFirstCarried = 2;  // operands before it: the number of turns, the condition

// Finds what computes the values of a body.
class BodyValues {
 public:
  explicit BodyValues(const SubgraphBody& body) : body_(body), producers_(body.names.size(), -1) {
    for (size_t n = 0; n < body.nodes.size(); ++n) {
      const ValueId out = body.nodes[n].outputs[0];
      if (out != kNoValue) producers_[static_cast<size_t>(out)] = static_cast<int>(n);
    }
  }
  // Returns the node whose first result a value is; null if there is none, or it lacks operands. A
  // body was not checked when it was read.
  [[nodiscard]] const Node* producer(int local) const {
    const int n = local < 0 ? -1 : producers_[static_cast<size_t>(local)];
    if (n < 0) return nullptr;
    const Node& node = body_.nodes[static_cast<size_t>(n)];
    const int needed = node.op == nullptr ? 0 : node.op->min_inputs;
    for (int i = 0; i < needed; ++i) {
      if (!node.has_input(static_cast<size_t>(i))) return nullptr;
    }
    return node.op == nullptr ? nullptr : &node;
  }
  // Returns the value that this one is the same as.
  [[nodiscard]] int source(int local) const {
    for (const Node* node = producer(local); node != nullptr && node->type == "Identity";
         node = producer(local))
      local = node->inputs[0];
    return local;
  }
  // Returns the integer that a value of the type of a counter is in all turns, if 32 bits hold it:
  // casts among the types of counters keep it.
  [[nodiscard]] std::optional<int64_t> small_integer(const ExpandContext& c, int local) const {
    int from = source(local);
    const Node* node = producer(from);
    if (node != nullptr && node->type == "CastLike") from = source(node->inputs[0]);
    for (node = producer(from); node != nullptr && node->type == "Cast"; node = producer(from)) {
      const auto to = type_of_code(node->attributes.integer("to", 0));
      if (to != DType::kI64 && to != DType::kI32) return std::nullopt;
      from = source(node->inputs[0]);
    }
    const std::optional<int64_t> found = integer(c, from);
    return found && std::in_range<int32_t>(*found) ? found : std::nullopt;
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
  // Returns the integer that a constant is, of the body or of the graph around it.
  [[nodiscard]] std::optional<int64_t> integer(const ExpandContext& c, int local) const {
    const Tensor* tensor = nullptr;
    for (const auto& [known, constant] : body_.constants) {
      if (known == local) tensor = &constant;
    }
    for (const auto& [known, operand] : body_.captures) {
      const ValueId id = known == local ? c.input(operand) : kNoValue;
      if (id != kNoValue) tensor = c.constant_of(id);
    }
    const Node* node = producer(local);
    if (node != nullptr && node->type == "Constant") {
      if (const auto* number = node->attributes.find<int64_t>("value_int")) return *number;
      tensor = node->attributes.find<Tensor>("value");
    }
    const bool is_integer = tensor != nullptr && tensor->size() == 1 &&
                            !is_float(tensor->dtype()) && !is_small(tensor->dtype());
    return is_integer ? std::optional(integer_at(*tensor, 0)) : std::nullopt;
  }

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

// Returns the step by which the next value of a carried one is larger; 0 if that is not known.
int64_t step_of(const ExpandContext& c, const BodyValues& values, const Node* next,
                size_t carried) {
  if (next == nullptr || next->type != "Add") return 0;
  for (const size_t operand : {0, 1}) {
    const std::optional<int64_t> step = values.small_integer(c, next->inputs[1 - operand]);
    if (step && values.carried(next->inputs[operand]) == carried) return *step;
  }
  return 0;
}

std::optional<Counter> counter_of(const ExpandContext& c, const SubgraphBody& body) {
  if (c.has(0) && !is_count(c, c.input(0))) return std::nullopt;  // repeat_loop() refuses it
  const BodyValues values(body);
  const Node* condition = values.producer(values.source(body.outputs[0]));
  if (condition == nullptr) return std::nullopt;
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

// Returns `limit - initial`, but 2^62 or more if it is larger than that, and 0 or less if it is
// negative, so that it does not overflow, nor if `added` is added to it: a limit may be one that
// stands for "no end".
ValueId distance(ExpandContext& c, ValueId limit, ValueId initial, int64_t added) {
  constexpr int64_t kMost = int64_t{1} << 62;
  const auto number = [&](int64_t value) {
    Tensor tensor(DType::kI64, {});
    tensor.as<int64_t>()[0] = value;
    return c.constant(std::move(tensor));
  };
  const Tensor *first = c.constant_of(initial), *upper = c.upper_of(limit);
  const std::optional from = first != nullptr ? std::optional(integer_at(*first, 0)) : std::nullopt;
  const bool bounded = upper != nullptr && integer_at(*upper, 0) <= kMost / 2;
  // The nodes are the same at all sizes if sizes vary, as both operands may follow from them.
  const bool all = !from || c.graph().keeps_loops;
  if (all || *from > 0) limit = c.binary("Max", limit, initial);
  if (all || *from < (bounded ? -kMost / 2 : 0) || (!bounded && added != 0)) {
    const ValueId near = c.binary("Min", initial, number(kMost - 1));
    limit = c.binary("Min", limit, c.binary("Add", near, number(kMost)));
  }
  return c.binary("Sub", limit, initial);
}

// Returns the number of turns. The condition is known before the first turn, which takes place even
// if the counter has reached the limit.
ValueId turns_of(ExpandContext& c, const Counter& counter) {
  const auto count = [&](ValueId id) { return c.cast(c.reshape(id, {}), DType::kI64); };
  const int64_t round_up = counter.or_equal ? counter.step : counter.step - 1;
  ValueId turns = distance(c, count(counter.limit), count(counter.initial), round_up);
  if (round_up != 0) turns = c.binary("Add", turns, static_cast<double>(round_up));
  if (counter.step != 1) turns = c.binary("Div", turns, static_cast<double>(counter.step));
  turns = c.binary("Max", turns, 1.0);
  return c.has(0) ? c.binary("Min", count(c.input(0)), turns) : turns;
}

// Returns what a body appends in each turn to the sequence that it carries as value i; nullopt if
// it does anything else with that.
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
    if (hands_on && inner.has_input(0) && gone.contains(inner.inputs[0]))
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
  std::vector<int> parts;  // what is appended to each of them
  for (size_t i = 0; i < carried; ++i) {
    if (!is_empty_sequence(c.input(kFirstCarried + i))) continue;
    const std::optional<int> part = appended_part(given, i);
    if (!part) continue;
    stacked.push_back(i);
    parts.push_back(*part);
  }
  if (!counter && stacked.empty()) return std::nullopt;
  PlainLoop made{.node = c.node(), .results = {}, .stacks = {}};
  SubgraphBody body = given;
  if (counter) {
    made.node.inputs[0] = turns_of(c, *counter);
    go_on(body);
  }
  for (size_t k = 0; k < stacked.size(); ++k)
    stack_parts(made.node, body, stacked[k] - k, parts[k]);
  made.node.attributes.set("body", Subgraph{std::make_shared<const SubgraphBody>(std::move(body))});
  set_results(c, made, carried, given.outputs.size() - 1 - carried, stacked);
  return made;
}

}  // namespace hone::graph
