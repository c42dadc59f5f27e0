#include "hone/graph/passes/rewrite.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <utility>

#include "hone/graph/node_names.h"

namespace hone::graph {

// The graph while rules change it. A node that is gone has no operator.
class Rewriting {
 public:
  explicit Rewriting(Graph& graph) : graph_(graph), uses_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      order_.push_back(static_cast<int>(i));
      places_.push_back(std::prev(order_.end()));
    }
  }

  Status run(std::span<const Rule> rules) {
    bool changed_at_all = false;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto at = order_.begin(); at != order_.end();) {
        const auto index = static_cast<size_t>(*at);
        HONE_ASSIGN_OR_RETURN(const bool here, apply(rules, index));
        changed = changed || here;
        if (!here) {
          ++at;
        } else if (graph_.nodes[index].op == nullptr) {
          at = order_.erase(at);  // the new nodes follow: they may be changed further
        }
      }
      changed_at_all = changed_at_all || changed;
    }
    if (changed_at_all) put_in_order();
    return ok_status();
  }

  Status replace(size_t index, const Build& build) {
    const Node old = graph_.nodes[index];
    std::vector<Node> made;
    ExpandContext context(graph_, old, made);
    const ValueId value = build(context);
    HONE_RETURN_IF_ERROR(context.status());
    const ValueId result = old.outputs[0];
    HONE_ASSERT(graph_.value(value).shape == graph_.value(result).shape &&
                    graph_.value(value).dtype == graph_.value(result).dtype,
                "a node is replaced by one with the same type and shape");
    const bool ends = !made.empty() && made.back().outputs[0] == value;
    if (ends) made.back().outputs[0] = result;
    std::vector<std::string> names;
    for (Node& node : made) names.push_back(std::exchange(node.name, ""));
    // The last one stands for the old one, unless one does the same as that or it has a name
    // already.
    if (ends && names.back().starts_with(old.name + "#") &&
        std::find(names.begin(), names.end(), old.name) == names.end())
      names.back() = old.name;
    const size_t first = graph_.nodes.size();
    insert_behind(index, std::move(made));
    if (!ends) redirect(result, value);
    remove(index);
    remove_unread();
    // The name of a dead node goes to the new node that does the same with other operands.
    for (size_t i = 0; i < names.size(); ++i) {
      Node& node = graph_.nodes[first + i];
      if (node.op != nullptr) node.name = node_names().take(names[i]);
    }
    return ok_status();
  }

  void bypass(size_t index, ValueId value) {
    redirect(graph_.nodes[index].outputs[0], value);
    remove(index);
    remove_unread();
  }

  void replace_operand(size_t index, size_t i, ValueId value) {
    const ValueId old = std::exchange(graph_.nodes[index].inputs[i], value);
    uses_.readers[static_cast<size_t>(value)].push_back(static_cast<int>(index));
    drop_use(old, index);
    remove_unread();
  }

 private:
  Result<bool> apply(std::span<const Rule> rules, size_t index) {
    if (graph_.nodes[index].outputs.size() != 1) return false;
    for (const Rule& rule : rules) {
      HONE_ASSIGN_OR_RETURN(const bool here, rule.apply({graph_, uses_, index, *this}));
      if (!here) continue;
      ++graph_.rules[rule.name];
      return true;
    }
    return false;
  }

  NodeNames& node_names() {
    if (!names_) names_.emplace(graph_);
    return *names_;
  }

  void insert_behind(size_t index, std::vector<Node> made) {
    uses_.readers.resize(graph_.values.size());
    uses_.producer.resize(graph_.values.size(), -1);
    uses_.output.resize(graph_.values.size(), false);
    const auto next = std::next(places_[index]);
    for (Node& node : made) {
      const auto at = static_cast<int>(graph_.nodes.size());
      for (const ValueId in : node.inputs) {
        if (in != kNoValue) uses_.readers[static_cast<size_t>(in)].push_back(at);
      }
      for (const ValueId out : node.outputs) {
        if (out == kNoValue) continue;
        uses_.producer[static_cast<size_t>(out)] = at;
        unread_.push_back(out);  // if nothing reads it when that is looked at
      }
      places_.push_back(order_.insert(next, at));
      graph_.nodes.push_back(std::move(node));
    }
  }

  void redirect(ValueId from, ValueId to) {
    auto& old = uses_.readers[static_cast<size_t>(from)];
    auto& readers = uses_.readers[static_cast<size_t>(to)];
    for (const int reader : old) {
      auto& inputs = graph_.nodes[static_cast<size_t>(reader)].inputs;
      std::replace(inputs.begin(), inputs.end(), from, to);
      readers.push_back(reader);
    }
    old.clear();
    if (!uses_.output[static_cast<size_t>(from)]) return;
    std::replace(graph_.outputs.begin(), graph_.outputs.end(), from, to);
    uses_.output[static_cast<size_t>(from)] = false;
    uses_.output[static_cast<size_t>(to)] = true;
  }

  void drop_use(ValueId id, size_t reader) {
    auto& readers = uses_.readers[static_cast<size_t>(id)];
    const auto at = std::find(readers.begin(), readers.end(), static_cast<int>(reader));
    *at = readers.back();
    readers.pop_back();
    unread_.push_back(id);  // if this was its last reader
  }

  // The node keeps its place in the order, where run() stands.
  void remove(size_t index) {
    const Node node = std::exchange(graph_.nodes[index], {});
    if (names_ || !node.name.empty()) node_names().release(node.name);
    for (const ValueId out : node.outputs) {
      if (out == kNoValue) continue;
      int& producer = uses_.producer[static_cast<size_t>(out)];
      if (producer == static_cast<int>(index)) producer = -1;
    }
    for (const ValueId in : node.inputs) {
      if (in != kNoValue) drop_use(in, index);
    }
  }

  [[nodiscard]] bool is_read(ValueId id) const {
    return id != kNoValue && (uses_.output[static_cast<size_t>(id)] ||
                              !uses_.readers[static_cast<size_t>(id)].empty());
  }

  // Nodes whose results nobody reads any more, and constants: folded weights may be large.
  void remove_unread() {
    while (!unread_.empty()) {
      const ValueId id = unread_.back();
      unread_.pop_back();
      if (is_read(id)) continue;
      const int producer = uses_.producer[static_cast<size_t>(id)];
      if (producer < 0) {
        graph_.value(id).constant.reset();
        continue;
      }
      const auto& outputs = graph_.nodes[static_cast<size_t>(producer)].outputs;
      if (std::any_of(outputs.begin(), outputs.end(), [&](ValueId out) { return is_read(out); }))
        continue;
      order_.erase(places_[static_cast<size_t>(producer)]);
      remove(static_cast<size_t>(producer));
    }
  }

  void put_in_order() {
    std::vector<Node> nodes;
    nodes.reserve(order_.size());
    for (const int index : order_)
      nodes.push_back(std::move(graph_.nodes[static_cast<size_t>(index)]));
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  Uses uses_;
  std::list<int> order_;                          // indices of the nodes
  std::vector<std::list<int>::iterator> places_;  // by index; of nodes that are gone: none
  std::optional<NodeNames> names_;
  std::vector<ValueId> unread_;  // values that have lost a reader, or are new
};

Status replace_node(const RewriteSite& site, const Build& build) {
  return site.rewriting.replace(site.index, build);
}

void bypass_node(const RewriteSite& site, ValueId value) {
  site.rewriting.bypass(site.index, value);
}

void replace_operand(const RewriteSite& site, size_t i, ValueId value) {
  site.rewriting.replace_operand(site.index, i, value);
}

const Node* RewriteSite::maker(ValueId id) const {
  const int producer = id == kNoValue ? -1 : uses.producer[static_cast<size_t>(id)];
  return producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
}

const Node* RewriteSite::sole_maker(ValueId id) const {
  return id != kNoValue && sole_reader(id) >= 0 ? maker(id) : nullptr;
}

int RewriteSite::sole_reader(ValueId id) const {
  const auto& readers = uses.readers[static_cast<size_t>(id)];
  return readers.size() == 1 && !uses.output[static_cast<size_t>(id)] ? readers[0] : -1;
}

Status rewrite(Graph& graph, std::span<const Rule> rules) {
  for (const Rule& rule : rules) graph.rules.emplace(rule.name, 0);
  return Rewriting(graph).run(rules);
}

std::optional<double> uniform_constant(const Value& value) {
  if (!value.constant || value.constant->size() == 0) return std::nullopt;
  const Tensor& tensor = *value.constant;
  const double first = tensor.at(0);
  // Uniform weights are not worth a look at each of their elements.
  if (tensor.size() > 1 << 16) return std::nullopt;
  for (int64_t i = 1; i < tensor.size(); ++i) {
    if (tensor.at(i) != first) return std::nullopt;
  }
  return first;
}

Shape permutation_of(const Graph& graph, const Node& node) {
  Shape perm = node.attributes.integers("perm");
  if (!perm.empty()) return perm;
  for (size_t d = graph.value(node.inputs[0]).shape.size(); d-- > 0;)
    perm.push_back(static_cast<int64_t>(d));
  return perm;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0);
}

namespace {

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, Subgraph>) return false;
        if constexpr (std::is_same_v<T, Tensor>) return same_bytes(x, y);
        if constexpr (!std::is_same_v<T, Subgraph> && !std::is_same_v<T, Tensor>) return x == y;
      },
      a);
}

}  // namespace

bool same_attributes(const Attributes& a, const Attributes& b) {
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), b.all().end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && same_attribute(x.second, y.second);
                    });
}

}  // namespace hone::graph
