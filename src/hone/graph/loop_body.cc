#include "hone/graph/loop_body.h"

#include <algorithm>

namespace hone::graph {

std::string fault_message(const std::string& beyond, std::span<const int64_t> shapes) {
  if (shapes.empty()) return beyond;
  const auto second = shapes.begin() + std::ssize(shapes) / 2;
  return fmt::format("{}: {} and {}", beyond, to_string(Shape(shapes.begin(), second)),
                     to_string(Shape(second, shapes.end())));
}

bool same_kind(const LoopBody& a, const LoopBody& b) {
  return a.carried == b.carried && a.reversed == b.reversed && a.conditional == b.conditional &&
         a.beyond.empty() == b.beyond.empty() && a.names_shapes == b.names_shapes &&
         a.graph.inputs.size() == b.graph.inputs.size() &&
         a.graph.outputs.size() == b.graph.outputs.size() &&
         a.graph.values.size() == b.graph.values.size();
}

bool same_kind_inside(const LoopBody& a, const LoopBody& b) {
  if (!same_kind(a, b)) return false;
  // The values of a body have the same ids at all sizes, as they are made in one order.
  return std::all_of(a.graph.nodes.begin(), a.graph.nodes.end(), [&](const Node& node) {
    if (node.loop == nullptr) return true;
    const auto twin = std::find_if(
        b.graph.nodes.begin(), b.graph.nodes.end(),
        [&](const Node& other) { return other.outputs == node.outputs && other.loop != nullptr; });
    return twin != b.graph.nodes.end() && same_kind_inside(*node.loop, *twin->loop);
  });
}

}  // namespace hone::graph
