// Constants first, so that nodes that read equal ones have the same operands; then nodes in order.
#include <algorithm>
#include <map>
#include <tuple>

#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

bool commutes(const std::string& type) {
  static constexpr std::string_view kTypes[] = {"Add", "Mul", "Max", "Min",  "Sum",
                                                "And", "Or",  "Xor", "Equal"};
  return std::count(std::begin(kTypes), std::end(kTypes), type) > 0;
}

// Each run, or each node, gives another result; or the result's shape is known to the run only.
bool differs_each_time(const std::string& type) {
  return type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial" ||
         type == "Dropout" || type == "hone.Compact";
}

class Merger {
 public:
  explicit Merger(Graph& graph) : graph_(graph), same_(graph.values.size()) {
    for (size_t i = 0; i < same_.size(); ++i) same_[i] = static_cast<ValueId>(i);
  }

  void run() {
    merge_constants();
    std::vector<Node> kept;
    for (Node& node : graph_.nodes) {
      for (ValueId& in : node.inputs) {
        if (in != kNoValue) in = same_[static_cast<size_t>(in)];
      }
      if (!merge(kept, node)) kept.push_back(std::move(node));
    }
    graph_.nodes = std::move(kept);
    for (ValueId& out : graph_.outputs) out = same_[static_cast<size_t>(out)];
  }

 private:
  // Types, shapes and the first bytes tell almost all constants apart without a look at the rest.
  void merge_constants() {
    std::map<std::tuple<DType, Shape, std::string>, std::vector<ValueId>> known;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const auto& constant = graph_.value(id).constant;
      if (!constant) continue;
      const auto first = static_cast<size_t>(std::min<int64_t>(64, constant->bytes()));
      std::string head(static_cast<const char*>(constant->data()), first);
      auto& alike = known[{constant->dtype(), constant->shape(), std::move(head)}];
      const auto twin = std::find_if(alike.begin(), alike.end(), [&](ValueId other) {
        return same_bytes(*constant, *graph_.value(other).constant);
      });
      if (twin == alike.end()) {
        alike.push_back(id);
      } else {
        same_[i] = *twin;
      }
    }
  }

  // Whether an earlier node computes the same: its results then serve.
  bool merge(std::vector<Node>& kept, const Node& node) {
    if (differs_each_time(node.type)) return false;
    std::vector<ValueId> operands = node.inputs;
    if (commutes(node.type)) std::sort(operands.begin(), operands.end());
    auto& alike = known_[{node.type, node.opset, std::move(operands)}];
    for (const size_t index : alike) {
      Node& earlier = kept[index];
      if (!same_attributes(earlier.attributes, node.attributes)) continue;
      // A result that only the later node wants joins the earlier node; but some operators give
      // their first result another meaning by how many are wanted.
      if (earlier.outputs.size() != node.outputs.size()) continue;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId mine = node.outputs[i];
        if (mine == kNoValue) continue;
        if (earlier.outputs[i] == kNoValue) earlier.outputs[i] = mine;
        same_[static_cast<size_t>(mine)] = earlier.outputs[i];
      }
      return true;
    }
    alike.push_back(kept.size());
    return false;
  }

  Graph& graph_;
  std::vector<ValueId> same_;
  std::map<std::tuple<std::string, int, std::vector<ValueId>>, std::vector<size_t>> known_;
};

}  // namespace

Status eliminate_common_subexpressions(Graph& graph) {
  Merger(graph).run();
  return ok_status();
}

}  // namespace hone::graph
