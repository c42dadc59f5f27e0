#include <algorithm>
#include <cmath>
#include <set>

#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

// Errors of small rows stay far below this, relative to the largest rows. Normalizations of layers
// add 1e-5 or 1e-6 to a square, which is more; those of vectors divide by 1e-12 at least.
constexpr double kLeastLength = 1e-4;

// Returns whether the results of a node are elements of its first operand.
bool only_moves(const Node& node) {
  return node.op->kind == Kind::kView || node.type == "Gather" || node.type == "Pad" ||
         node.type == "Expand";
}
bool is_pointwise(const Node& node) {
  return node.op->kind == Kind::kElementwise || only_moves(node);
}

class SmallRows {
 public:
  explicit SmallRows(Graph& graph) : graph_(graph), uses_(graph) {}

  void run() {
    std::vector<bool> reduced(graph_.values.size(), false);  // a reduction lies behind the value
    for (const Node& node : graph_.nodes) {
      const bool reads = is_pointwise(node) && std::ranges::any_of(node.inputs, [&](ValueId id) {
                           return id != kNoValue && reduced[static_cast<size_t>(id)];
                         });
      for (const ValueId id : node.outputs) {
        if (id != kNoValue)
          reduced[static_cast<size_t>(id)] = reads || node.type.starts_with("Reduce");
      }
      if (node.type == "RMSNormalization" &&
          std::sqrt(node.attributes.number("epsilon", 1e-5F)) < kLeastLength)
        mark(node.inputs[0]);
      if (node.type != "Div" && node.type != "Mul") continue;
      for (const size_t i : {0, 1}) {
        if (node.type == "Div" && i == 1) continue;
        const ValueId divisor = node.inputs[1 - i];
        if (!reduced[static_cast<size_t>(divisor)]) continue;
        if (is_own_length(divisor, node.inputs[i], node.type == "Div")) mark(node.inputs[i]);
      }
    }
  }

 private:
  // Returns the node that makes a value; null for inputs and constants.
  [[nodiscard]] Node* maker(ValueId id) {
    if (id == kNoValue || graph_.value(id).constant) return nullptr;
    const int producer = uses_.producer[static_cast<size_t>(id)];
    return producer < 0 ? nullptr : &graph_.nodes[static_cast<size_t>(producer)];
  }

  // Adds the value and those that it is made of by nodes that `passes` holds for.
  void collect(ValueId id, bool (*passes)(const Node&), std::set<ValueId>& found) {
    std::vector<ValueId> open = {id};
    while (!open.empty()) {
      const ValueId next = open.back();
      open.pop_back();
      if (next == kNoValue || !found.insert(next).second) continue;
      const Node* node = maker(next);
      if (node != nullptr && passes(*node))
        open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    }
  }

  // Returns whether a divisor, or a factor that is the inverse of one, is a length of `data` that
  // is kept from 0 by very little: a root or a maximum over a reduction of the same values.
  bool is_own_length(ValueId divisor, ValueId data, bool divides) {
    struct Place {
      ValueId id;
      int roots;  // between it and the divisor
    };
    std::vector<Place> open = {{divisor, 0}};
    std::set<ValueId> seen;
    std::vector<ValueId> reduced;
    double least = 0;
    while (!open.empty()) {
      const auto [id, roots] = open.back();
      open.pop_back();
      const Node* node = maker(id);
      if (node == nullptr || !seen.insert(id).second) continue;
      if (node->type.starts_with("Reduce")) {
        reduced.push_back(node->inputs[0]);
        continue;
      }
      if (!is_pointwise(*node)) continue;
      divides = divides || node->type == "Reciprocal" ||
                (node->type == "Div" && !graph_.value(node->inputs[1]).constant);
      const int inside = roots + (node->type == "Sqrt" ? 1 : 0);
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const ValueId operand = node->inputs[i];
        if (operand == kNoValue) continue;
        const std::optional<double> number = uniform_constant(graph_.value(operand));
        const bool bounds =
            node->type == "Max" || node->type == "Add" || (node->type == "Clip" && i == 1);
        if (number && bounds && *number < 1)
          least = std::max(least, std::pow(std::max(*number, 0.0), std::pow(0.5, roots)));
        open.push_back({operand, inside});
      }
    }
    if (!divides || reduced.empty() || least >= kLeastLength) return false;
    std::set<ValueId> own, of;
    collect(data, only_moves, own);
    for (const ValueId id : reduced) collect(id, is_pointwise, of);
    return std::any_of(own.begin(), own.end(),
                       [&](ValueId id) { return !graph_.value(id).constant && of.contains(id); });
  }

  // Marks the products and convolutions of which a value is made.
  void mark(ValueId id) {
    std::set<ValueId> found;
    collect(id, is_pointwise, found);
    for (const ValueId value : found) {
      Node* node = maker(value);
      if (node == nullptr || node->op->kind != Kind::kContraction || node->plain_sums) continue;
      node->plain_sums = true;
      ++graph_.rules["product"];
    }
  }

  Graph& graph_;
  const Uses uses_;
};

}  // namespace

Status keep_small_rows(Graph& graph) {
  SmallRows(graph).run();
  return ok_status();
}

}  // namespace hone::graph
