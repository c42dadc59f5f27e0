#include "hone/graph/node_names.h"

#include <charconv>

namespace hone::graph {
namespace {

std::string with_suffix(const std::string& base, NodeNames::Suffix suffix, int64_t number) {
  if (number == 0) return base;
  if (suffix == NodeNames::Suffix::kNumber) return fmt::format("{}.{}", base, number);
  if (number <= NodeNames::kMostSigns) return base + std::string(static_cast<size_t>(number), '#');
  return fmt::format("{}#{}", base, number);
}

}  // namespace

std::string name_and_type(const Node& node) {
  if (node.made_for != nullptr) {
    // An operator of Hone's own tells a reader nothing.
    if (node.type.starts_with("hone.")) return *node.made_for;
    return fmt::format("{}, computed by {}", *node.made_for, node.type);
  }
  return fmt::format("node '{}' ({})", node.name, node.type);
}

NodeNames::NodeNames(const Graph& graph) {
  taken_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) taken_.insert(node.name);
}

std::string NodeNames::take(const std::string& base, Suffix suffix) {
  if (taken_.insert(base).second) return base;
  int64_t& number = next_[static_cast<size_t>(suffix)].try_emplace(base, 1).first->second;
  std::string name = with_suffix(base, suffix, number);
  while (!taken_.insert(name).second) name = with_suffix(base, suffix, ++number);
  ++number;
  return name;
}

void NodeNames::release(const std::string& name) {
  taken_.erase(name);
  // A number that is free again is the next one of its name.
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return;
  int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + dot + 1, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return;
  auto& numbers = next_[static_cast<size_t>(Suffix::kNumber)];
  const auto next = numbers.find(name.substr(0, dot));
  if (next != numbers.end() && number > 0 && number < next->second) next->second = number;
}

}  // namespace hone::graph
