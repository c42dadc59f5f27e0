#include "hone/backend/cpu/match_loops.h"

#include <algorithm>

#include "hone/ir/printer.h"

namespace hone::backend::cpu {
namespace {

// The most nodes of a program: unrolled loops around others are repeated.
constexpr size_t kMaxNodes = 4096;
constexpr int64_t kMaxVectors = 64;  // vectors of one iteration
constexpr int64_t kFewVectors = 16;

// Loops of a program in pre-order.
struct Node {
  std::string name;
  ir::ForKind kind = ir::ForKind::kSerial;
  int64_t extent = 0;  // 0: it is not a constant
  int64_t element_bytes = 4;
  size_t end = 0;  // the number of the node behind those inside it
};

int64_t smallest_element(const ir::StmtNode& s) {
  int64_t bytes = s.kind == ir::StmtKind::kStore ? dtype_bytes(s.buffer->dtype) : 8;
  for (const ir::Stmt& child : s.body) bytes = std::min(bytes, smallest_element(*child));
  return bytes;
}

class ProgramLoops {
 public:
  explicit ProgramLoops(const ir::StmtNode& phase) { add(phase); }
  std::vector<Node> nodes;

 private:
  void add_all(const std::vector<ir::Stmt>& body) {
    for (const ir::Stmt& s : body) add(*s);
  }
  void add(const ir::StmtNode& s) {
    if (s.kind != ir::StmtKind::kFor) return add_all(s.body);
    const bool is_known = ir::is_const_int(s.extent);
    const int64_t extent = is_known ? s.extent->int_value : 0;
    if (s.for_kind == ir::ForKind::kUnrolled && is_known) {
      const size_t before = nodes.size();
      add_all(s.body);
      const bool has_loops = nodes.size() > before;
      for (int64_t i = 1; i < extent && has_loops && nodes.size() < kMaxNodes; ++i) add_all(s.body);
      return;
    }
    const size_t at = nodes.size();
    nodes.push_back(
        {.name = s.var->name + " in " + ir::print(s.min) + ".." + ir::print(s.min + s.extent),
         .kind = s.for_kind,
         .extent = extent,
         .element_bytes = std::max<int64_t>(1, smallest_element(s))});
    add_all(s.body);
    nodes[at].end = nodes.size();
  }
};

class Matcher {
 public:
  Matcher(const FlowGraph& graph, std::span<const LoopRun> runs, const std::vector<Node>& nodes,
          int64_t tiles, const target::Cpu& target)
      : graph_(graph), runs_(runs), nodes_(nodes), tiles_(tiles), target_(target) {
    found_.resize(graph.loops.size());
    match(kOutside, 0, nodes.size());
  }
  [[nodiscard]] std::vector<MatchedLoop> found() && { return std::move(found_); }

 private:
  // Matches the loops directly inside one, to nodes begin.. end - 1.
  void match(int parent, size_t begin, size_t end) {
    for (size_t l = 0; l < graph_.loops.size(); ++l) {
      if (graph_.loops[l].parent != parent) continue;
      const int loop = static_cast<int>(l);
      size_t node = begin;
      while (node < end && !fits(nodes_[node], runs_[l])) ++node;
      if (node == end) {
        match(loop, begin, end);
        continue;
      }
      found_[l] = {nodes_[node].name, trips_of(nodes_[node])};
      match(loop, node + 1, nodes_[node].end);
      begin = nodes_[node].end;
    }
  }

  [[nodiscard]] int64_t lanes(const Node& node) const {
    return std::max<int64_t>(1, target_.vector_bytes / node.element_bytes);
  }
  [[nodiscard]] int64_t trips_of(const Node& node) const {
    if (node.kind == ir::ForKind::kParallel) return tiles_;
    if (node.kind == ir::ForKind::kVectorized) return node.extent / lanes(node);
    return node.extent;
  }

  [[nodiscard]] bool fits(const Node& node, const LoopRun& run) const {
    const bool may_be_one = node.kind == ir::ForKind::kParallel && tiles_ == 1;
    if (node.extent == 1 && !may_be_one) return false;  // there is no loop for it
    if (node.extent == 0) return true;
    if (!run.known || run.entries == 0)  // few vectors have no loop
      return node.kind != ir::ForKind::kVectorized || node.extent >= lanes(node) * kFewVectors;
    if (run.iterations % run.entries != 0) return false;
    const int64_t trips = run.iterations / run.entries;
    if (node.kind == ir::ForKind::kParallel) return trips == tiles_;
    if (trips == node.extent) return true;
    if (node.kind != ir::ForKind::kVectorized || trips == 0) return false;
    // Whole groups of vectors of any width; what is left over has no loop.
    for (int64_t width = 2; width <= lanes(node) * kMaxVectors; width *= 2) {
      if (node.extent / width == trips) return true;
    }
    for (int64_t vectors = 1; vectors <= kMaxVectors; ++vectors) {
      if (node.extent / (lanes(node) * vectors) == trips) return true;
    }
    return false;
  }

  const FlowGraph& graph_;
  const std::span<const LoopRun> runs_;
  const std::vector<Node>& nodes_;
  const int64_t tiles_;
  const target::Cpu& target_;
  std::vector<MatchedLoop> found_;
};

}  // namespace

std::vector<MatchedLoop> match_loops(const FlowGraph& graph, std::span<const LoopRun> runs,
                                     const ir::Stmt& phase, int64_t tiles,
                                     const target::Cpu& target) {
  const ProgramLoops loops(*phase);
  return Matcher(graph, runs, loops.nodes, tiles, target).found();
}

}  // namespace hone::backend::cpu
