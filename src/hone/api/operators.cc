#include "hone/operators.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "hone/graph/ops/registry.h"

namespace hone {
namespace {

std::string_view kind_text(const graph::Op& op) {
  if (op.expand != nullptr && op.emit == nullptr) return "other operators";
  if (op.emit == nullptr && op.kind != graph::Kind::kView) return "folded";
  switch (op.kind) {
    case graph::Kind::kContraction: return "contraction";
    case graph::Kind::kReduction: return "reduction";
    case graph::Kind::kElementwise: return "elementwise";
    case graph::Kind::kView: return "view";
    case graph::Kind::kOpaque: return "own kernel";
  }
  return "";
}

// The names in a text such as "axis:int keepdims:int".
std::vector<std::string> attribute_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (!item.empty()) names.emplace_back(item.substr(0, item.find(':')));
  }
  return names;
}

}  // namespace

std::string OperatorInfo::domain() const {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

std::vector<OperatorInfo> operators() {
  std::map<std::string, std::vector<const graph::Op*>> found;
  for (const graph::Op* op : graph::all_ops()) {
    const bool internal = op->name.starts_with("hone.");
    if (!internal && op->until >= graph::kMinOpset) found[std::string(op->name)].push_back(op);
  }
  std::vector<OperatorInfo> operators;
  for (auto& [name, meanings] : found) {
    std::sort(meanings.begin(), meanings.end(),
              [](const graph::Op* a, const graph::Op* b) { return a->since < b->since; });
    const graph::Op& newest = *meanings.back();
    OperatorInfo info = {
        name, {}, std::string(kind_text(newest)), attribute_names(newest.attributes)};
    for (const graph::Op* op : meanings) {
      if (info.domain().empty())
        info.opsets.push_back({std::max(op->since, graph::kMinOpset), op->until});
    }
    operators.push_back(std::move(info));
  }
  return operators;
}

OpsetRange opsets() { return {graph::kMinOpset, graph::kMaxOpset}; }

}  // namespace hone
