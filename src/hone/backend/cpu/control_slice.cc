#include "hone/backend/cpu/control_slice.h"

#include <algorithm>

#include "hone/backend/cpu/arm_lanes.h"
#include "hone/backend/cpu/scalar_arm.h"
#include "hone/backend/cpu/scalar_x86.h"

namespace hone::backend::cpu {
namespace {

using Set = std::vector<bool>;  // of variables

bool writes_some(const ScalarInst& inst, const Set& live) {
  bool found = false;
  inst.for_each_def([&](Variable v) { found = found || live[static_cast<size_t>(v)]; });
  return found;
}

// Goes backward over a block: `live` are the variables on which a later branch depends. Returns the
// numbers of the instructions that write one, from the last to the first.
std::vector<size_t> go_back(const ScalarBlock& block, Set& live) {
  if (block.condition != Condition::kAlways && block.condition != Condition::kUnknown)
    live[kFlags] = true;
  if (block.guess.variable != kNoVariable) live[static_cast<size_t>(block.guess.variable)] = true;
  std::vector<size_t> kept;
  for (size_t i = block.insts.size(); i-- > 0;) {
    const ScalarInst& inst = block.insts[i];
    if (!writes_some(inst, live)) continue;
    kept.push_back(i);
    inst.for_each_def([&](Variable v) { live[static_cast<size_t>(v)] = false; });
    inst.for_each_use([&](Variable v) { live[static_cast<size_t>(v)] = true; });
  }
  return kept;
}

bool unite(Set& into, const Set& from) {
  bool changed = false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i] || into[i]) continue;
    into[i] = changed = true;
  }
  return changed;
}

// The variables on which a branch depends, at the beginning and at the end of each block.
struct Liveness {
  std::vector<Set> in, out;
};
Liveness find_liveness(const FlowGraph& graph, const ScalarCode& code) {
  const Set none(static_cast<size_t>(code.words.num_variables()), false);
  Liveness live{std::vector<Set>(graph.blocks.size(), none),
                std::vector<Set>(graph.blocks.size(), none)};
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = graph.blocks.size(); b-- > 0;) {
      for (const int to : graph.blocks[b].next) {
        if (to != kOutside) unite(live.out[b], live.in[static_cast<size_t>(to)]);
      }
      Set in = live.out[b];
      go_back(code.blocks[b], in);
      changed |= unite(live.in[b], in);
    }
  }
  return live;
}

std::vector<Variable> members(const Set& set) {
  std::vector<Variable> found;
  for (size_t v = 0; v < set.size(); ++v) {
    if (set[v]) found.push_back(static_cast<Variable>(v));
  }
  return found;
}

}  // namespace

ScalarCode scalar_code(const std::vector<Instruction>& body, const FlowGraph& graph,
                       int64_t stack_pointer, const target::Cpu& target) {
  ScalarCode code;
  code.blocks.resize(graph.blocks.size());
  const bool is_x86 = target.triple.starts_with("x86_64");
  const bool is_arm = is_arm_code(target);
  std::vector<std::optional<StackPlace>> places(graph.blocks.size());
  places[0] = StackPlace{stack_pointer, std::nullopt};
  std::vector<int> left = {0};
  while (!left.empty()) {
    const auto b = static_cast<size_t>(left.back());
    left.pop_back();
    StackPlace place = *places[b];
    const CodeBlock& block = graph.blocks[b];
    ScalarBlock& scalar = code.blocks[b];
    if (is_arm) scalar.insts.push_back(begin_block_arm(code.words));
    for (size_t i = block.first; i <= block.last; ++i) {
      if (is_x86) decode_x86(body[i], place, code.words, scalar.insts);
      if (is_arm) decode_arm(body[i], place, code.words, scalar.insts);
    }
    const Instruction& last = body[block.last];
    if (is_arm) {
      scalar.condition = end_block_arm(last, code.words, scalar.insts);
      scalar.guess = guess_branch_arm(last, code.words);
    } else if (last.flow == Flow::kBranch) {
      scalar.condition = is_x86 ? branch_condition_x86(last) : Condition::kUnknown;
    }
    code.end = place;
    for (const int to : block.next) {
      if (to == kOutside || places[static_cast<size_t>(to)]) continue;
      places[static_cast<size_t>(to)] = place;
      left.push_back(to);
    }
  }
  return code;
}

ControlSlice control_slice(const FlowGraph& graph, const ScalarCode& code) {
  const Liveness live = find_liveness(graph, code);
  ControlSlice slice;
  slice.blocks.resize(graph.blocks.size());
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    Set at = live.out[b];
    std::vector<size_t> kept = go_back(code.blocks[b], at);
    std::reverse(kept.begin(), kept.end());
    slice.blocks[b].condition = code.blocks[b].condition;
    slice.blocks[b].guess = code.blocks[b].guess;
    for (const size_t i : kept) slice.blocks[b].insts.push_back(code.blocks[b].insts[i]);
  }
  for (size_t l = 0; l < graph.loops.size(); ++l) {
    const MachineLoop& loop = graph.loops[l];
    Set touched(static_cast<size_t>(code.words.num_variables()), false), written = touched;
    for (const int b : loop.blocks) {
      const ScalarBlock& block = slice.blocks[static_cast<size_t>(b)];
      if (block.condition != Condition::kAlways) touched[kFlags] = true;
      if (block.guess.variable != kNoVariable)
        touched[static_cast<size_t>(block.guess.variable)] = true;
      for (const ScalarInst& inst : block.insts) {
        inst.for_each_use([&](Variable v) { touched[static_cast<size_t>(v)] = true; });
        inst.for_each_def([&](Variable v) {
          touched[static_cast<size_t>(v)] = written[static_cast<size_t>(v)] = true;
        });
      }
    }
    Set read = live.in[static_cast<size_t>(loop.header)];
    for (size_t v = 0; v < read.size(); ++v) read[v] = read[v] && touched[v];
    slice.read.push_back(members(read));
    slice.written.push_back(members(written));
    std::vector<size_t>& inside = slice.inside.emplace_back();
    for (size_t inner = l; inner < graph.loops.size(); ++inner) {
      if (graph.contains(static_cast<int>(l), graph.loops[inner].header)) inside.push_back(inner);
    }
  }
  return slice;
}

}  // namespace hone::backend::cpu
