// Constants first, so that nodes that read equal ones have the same operands; then nodes in order.
#include <algorithm>
#include <map>
#include <tuple>

#include "hone/base/hash.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

bool commutes(const std::string& type) {
  static constexpr std::string_view kTypes[] = {"Add", "Mul", "Max", "Min",  "Sum",
                                                "And", "Or",  "Xor", "Equal"};
  return std::count(std::begin(kTypes), std::end(kTypes), type) > 0;
}

// A look at the whole of a constant, and at all nodes that read the same, is for few of them.
constexpr size_t kFew = 8;

template <typename T>
uint64_t hash_of(const T& x) {
  return hash_bytes(&x, sizeof x);
}
uint64_t hash_of(const std::string& x) { return hash_bytes(x.data(), x.size()); }
uint64_t hash_of(const Tensor& x) { return hash_bytes(x.data(), static_cast<size_t>(x.bytes())); }
uint64_t hash_of(const Subgraph&) { return 0; }
template <typename T>
uint64_t hash_of(const std::vector<T>& list) {
  uint64_t hash = list.size();
  for (const T& x : list) hash = hash_combine(hash, hash_of(x));
  return hash;
}

// Returns equal hashes for equal attributes.
uint64_t hash_of(const Attributes& attributes) {
  uint64_t hash = 0;
  for (const auto& [name, value] : attributes.all()) {
    hash = hash_combine(hash, hash_of(name));
    hash = hash_combine(hash, std::visit([](const auto& x) { return hash_of(x); }, value));
  }
  return hash;
}

// Each run, or each node, gives another result; or the result's shape is known to the run only; or
// a loop writes over the result.
bool differs_each_time(const std::string& type) {
  return type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial" ||
         type == "Dropout" || type == "hone.Compact" || type == "hone.Hold" ||
         type == "hone.Blank" || type == "hone.Loop";
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
    std::map<std::tuple<DType, Shape, uint64_t>, std::vector<ValueId>> by_hash;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const auto& constant = graph_.value(id).constant;
      if (!constant) continue;
      const auto first = static_cast<size_t>(std::min<int64_t>(64, constant->bytes()));
      std::string head(static_cast<const char*>(constant->data()), first);
      const auto twin_in = [&](const std::vector<ValueId>& list) {
        const auto twin = std::find_if(list.begin(), list.end(), [&](ValueId other) {
          return same_bytes(*constant, *graph_.value(other).constant);
        });
        if (twin != list.end()) {
          same_[i] = *twin;
          ++graph_.rules["constants"];
        }
        return twin != list.end();
      };
      auto& few = known[{constant->dtype(), constant->shape(), std::move(head)}];
      if (twin_in(few)) continue;
      if (few.size() < kFew) {
        few.push_back(id);
        continue;
      }
      auto& others = by_hash[{constant->dtype(), constant->shape(), hash_of(*constant)}];
      if (!twin_in(others)) others.push_back(id);
    }
  }

  // Uses the results of an earlier node that computes the same, if there is one.
  bool merge(std::vector<Node>& kept, const Node& node) {
    if (differs_each_time(node.type)) return false;
    std::vector<ValueId> operands = node.inputs;
    if (commutes(node.type)) std::sort(operands.begin(), operands.end());
    auto& alike = known_[{node.type, node.opset, std::move(operands), hash_of(node.attributes)}];
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
      ++graph_.rules[node.type];
      return true;
    }
    alike.push_back(kept.size());
    return false;
  }

  Graph& graph_;
  std::vector<ValueId> same_;
  std::map<std::tuple<std::string, int, std::vector<ValueId>, uint64_t>, std::vector<size_t>>
      known_;
};

}  // namespace

Status eliminate_common_subexpressions(Graph& graph) {
  Merger(graph).run();
  return ok_status();
}

}  // namespace hone::graph
