#include "hone/graph/dot.h"

#include "hone/base/printable.h"
#include "hone/graph/op.h"

namespace hone::graph {
namespace {

constexpr int kColours = 12;  // colours in Graphviz's scheme set312

// In quotes, and printable; a backslash would mean something else.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string draw_node(const Graph& graph, int index) {
  const Node& node = graph.nodes[static_cast<size_t>(index)];
  const bool view = node.op->kind == Kind::kView;
  return fmt::format("n{} [label={}, tooltip={}{}];\n", index, quoted(node.type), quoted(node.name),
                     view ? ", style=dashed" : "");
}

class Drawer {
 public:
  explicit Drawer(const Graph& graph) : graph_(graph), uses_(graph) {}

  std::string draw(const TaskList& tasks) {
    text_ = fmt::format("digraph {} {{\n", quoted(graph_.name));
    text_ += "  node [shape=box, style=filled, fillcolor=white];\n";
    for (const ValueId id : graph_.inputs) {
      text_ += fmt::format("  v{} [label={}, shape=ellipse];\n", id, quoted(graph_.value(id).name));
    }
    std::vector<bool> drawn(graph_.nodes.size(), false);
    for (size_t i = 0; i < tasks.calls.size(); ++i) {
      draw_task(i, tasks.calls[i]);
      for (const int index : tasks.calls[i].nodes) drawn[static_cast<size_t>(index)] = true;
    }
    for (size_t i = 0; i < drawn.size(); ++i) {
      if (!drawn[i]) text_ += "  " + draw_node(graph_, static_cast<int>(i));
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId in : graph_.nodes[i].inputs) draw_edge(in, fmt::format("n{}", i));
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      text_ +=
          fmt::format("  out{} [label={}, shape=ellipse];\n", i, quoted(graph_.output_names[i]));
      draw_edge(graph_.outputs[i], fmt::format("out{}", i));
    }
    return text_ + "}\n";
  }

 private:
  void draw_task(size_t index, const TaskCall& call) {
    text_ += fmt::format("  subgraph cluster_{} {{\n    label={};\n", index,
                         quoted(compute::kernel_class(call.dag)));
    text_ += fmt::format("    style=filled; colorscheme=set312; fillcolor={};\n",
                         call.group % kColours + 1);
    for (const int node : call.nodes) text_ += "    " + draw_node(graph_, node);
    text_ += "  }\n";
  }

  void draw_edge(ValueId from, const std::string& to) {
    if (from == kNoValue || graph_.value(from).constant) return;
    const int producer = uses_.producer[static_cast<size_t>(from)];
    const std::string source =
        producer >= 0 ? fmt::format("n{}", producer) : fmt::format("v{}", from);
    text_ += fmt::format("  {} -> {} [label={}];\n", source, to,
                         quoted(to_string(graph_.value(from).shape)));
  }

  const Graph& graph_;
  const Uses uses_;
  std::string text_;
};

}  // namespace

std::string to_dot(const Graph& graph, const TaskList& tasks) { return Drawer(graph).draw(tasks); }

}  // namespace hone::graph
