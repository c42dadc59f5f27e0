#include "hone/backend/cpu/flow_graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace hone::backend::cpu {
namespace {

bool ends_block(Flow flow) { return flow != Flow::kNext && flow != Flow::kCall; }

Result<std::vector<CodeBlock>> find_blocks(const std::vector<Instruction>& body) {
  std::map<uint64_t, size_t> at;  // instruction by address
  for (size_t i = 0; i < body.size(); ++i) at[body[i].address] = i;
  std::set<size_t> starts = {0};
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i].flow == Flow::kIndirect)
      return error(Code::kUnsupported, "machine code with a jump to a computed place");
    if (ends_block(body[i].flow)) starts.insert(i + 1);
    if (body[i].jumps_to && at.contains(*body[i].jumps_to)) starts.insert(at[*body[i].jumps_to]);
  }
  starts.erase(body.size());
  std::vector<CodeBlock> blocks;
  std::map<size_t, int> number;
  for (const size_t start : starts) {
    if (!blocks.empty()) blocks.back().last = start - 1;
    number[start] = static_cast<int>(blocks.size());
    blocks.push_back({.first = start});
  }
  blocks.back().last = body.size() - 1;
  for (CodeBlock& block : blocks) {
    const Instruction& end = body[block.last];
    const int behind = block.last + 1 < body.size() ? number[block.last + 1] : kOutside;
    const bool inside = end.jumps_to && at.contains(*end.jumps_to);
    const int target = inside ? number[at[*end.jumps_to]] : kOutside;
    if (end.flow == Flow::kReturn) continue;
    if (end.flow != Flow::kJump) block.next.push_back(behind);
    if (end.flow == Flow::kJump || end.flow == Flow::kBranch) block.next.push_back(target);
  }
  return blocks;
}

// The blocks that are reached, each before those that only follow it.
std::vector<int> reverse_post_order(const std::vector<CodeBlock>& blocks) {
  std::vector<int> order;
  std::vector<bool> seen(blocks.size(), false);
  std::vector<std::pair<int, size_t>> path = {{0, 0}};
  seen[0] = true;
  while (!path.empty()) {
    auto& [block, edge] = path.back();
    const std::vector<int>& next = blocks[static_cast<size_t>(block)].next;
    if (edge == next.size()) {
      order.push_back(block);
      path.pop_back();
      continue;
    }
    const int to = next[edge++];
    if (to == kOutside || seen[static_cast<size_t>(to)]) continue;
    seen[static_cast<size_t>(to)] = true;
    path.emplace_back(to, 0);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::vector<int>> predecessors(const std::vector<CodeBlock>& blocks,
                                           const std::vector<int>& order) {
  std::vector<std::vector<int>> before(blocks.size());
  for (const int b : order) {
    for (const int to : blocks[static_cast<size_t>(b)].next) {
      if (to != kOutside) before[static_cast<size_t>(to)].push_back(b);
    }
  }
  return before;
}

// Immediate dominators (K. Cooper, T. Harvey, K. Kennedy, "A simple, fast dominance algorithm").
class Dominators {
 public:
  Dominators(const std::vector<std::vector<int>>& before, const std::vector<int>& order)
      : rank_(before.size(), 0), parent_(before.size(), kOutside) {
    for (size_t i = 0; i < order.size(); ++i) rank_[static_cast<size_t>(order[i])] = i;
    parent_[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const int b : order) {
        if (b != 0) changed |= update(b, before[static_cast<size_t>(b)]);
      }
    }
  }
  [[nodiscard]] bool dominates(int a, int b) const {
    while (b != a && b != 0) b = parent_[static_cast<size_t>(b)];
    return a == b;
  }
  [[nodiscard]] size_t rank(int block) const { return rank_[static_cast<size_t>(block)]; }

 private:
  bool update(int block, const std::vector<int>& before) {
    int found = kOutside;
    for (const int p : before) {
      if (parent_[static_cast<size_t>(p)] == kOutside) continue;
      found = found == kOutside ? p : common(found, p);
    }
    if (parent_[static_cast<size_t>(block)] == found) return false;
    parent_[static_cast<size_t>(block)] = found;
    return true;
  }
  [[nodiscard]] int common(int a, int b) const {
    while (a != b) {
      while (rank(a) > rank(b)) a = parent_[static_cast<size_t>(a)];
      while (rank(b) > rank(a)) b = parent_[static_cast<size_t>(b)];
    }
    return a;
  }
  std::vector<size_t> rank_;
  std::vector<int> parent_;
};

void add_loop(std::map<int, std::set<int>>& loops, int header, int latch,
              const std::vector<std::vector<int>>& before) {
  std::set<int>& inside = loops[header];
  inside.insert(header);
  std::vector<int> left = {latch};
  while (!left.empty()) {
    const int block = left.back();
    left.pop_back();
    if (!inside.insert(block).second) continue;
    const std::vector<int>& more = before[static_cast<size_t>(block)];
    left.insert(left.end(), more.begin(), more.end());
  }
}

}  // namespace

bool FlowGraph::contains(int loop, int block) const {
  const std::vector<int>& inside = loops[static_cast<size_t>(loop)].blocks;
  return std::binary_search(inside.begin(), inside.end(), block);
}

Result<FlowGraph> flow_graph(const std::vector<Instruction>& body) {
  if (body.empty()) return error(Code::kUnsupported, "a function without machine code");
  FlowGraph graph;
  HONE_ASSIGN_OR_RETURN(graph.blocks, find_blocks(body));
  const std::vector<int> order = reverse_post_order(graph.blocks);
  const std::vector<std::vector<int>> before = predecessors(graph.blocks, order);
  const Dominators dominators(before, order);
  std::map<int, std::set<int>> loops;  // by header
  for (const int from : order) {
    for (const int to : graph.blocks[static_cast<size_t>(from)].next) {
      if (to == kOutside || dominators.rank(to) > dominators.rank(from)) continue;
      if (!dominators.dominates(to, from))
        return error(Code::kUnsupported, "machine code with a jump into a loop");
      add_loop(loops, to, from, before);
    }
  }
  for (const auto& [header, blocks] : loops)
    graph.loops.push_back({.header = header, .blocks = {blocks.begin(), blocks.end()}});
  // Outer loops have more blocks, and the first of a loop need not be its header.
  std::stable_sort(graph.loops.begin(), graph.loops.end(),
                   [](const MachineLoop& a, const MachineLoop& b) {
                     if (a.blocks[0] != b.blocks[0]) return a.blocks[0] < b.blocks[0];
                     return a.blocks.size() > b.blocks.size();
                   });
  for (size_t l = 0; l < graph.loops.size(); ++l) {
    MachineLoop& loop = graph.loops[l];
    for (const int b : loop.blocks) {
      int& innermost = graph.blocks[static_cast<size_t>(b)].loop;
      if (b == loop.header) loop.parent = innermost;
      innermost = static_cast<int>(l);
    }
    if (loop.parent != kOutside)
      loop.depth = graph.loops[static_cast<size_t>(loop.parent)].depth + 1;
  }
  return graph;
}

}  // namespace hone::backend::cpu
