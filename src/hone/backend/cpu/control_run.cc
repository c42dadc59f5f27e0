#include "hone/backend/cpu/control_run.h"

#include <algorithm>
#include <set>

#include "hone/backend/cpu/control_slice.h"
#include "hone/backend/cpu/scalar_arm.h"
#include "hone/backend/cpu/scalar_x86.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kMaxSteps = 4'000'000;  // blocks of the slice, some tenths of a second
constexpr size_t kMaxKnown = 200'000;     // results of loops that are kept
constexpr int64_t kStackTop = 0x7f0000000000;

// Returns what a call pushes; Arm keeps the return address in a register.
int64_t return_address_bytes(const target::Cpu& target) { return is_arm_code(target) ? 0 : 8; }

class Runner {
 public:
  Runner(const std::vector<Instruction>& body, const FlowGraph& graph, ControlSlice slice,
         std::span<const int64_t> trips, ScalarState state)
      : body_(body),
        graph_(graph),
        slice_(std::move(slice)),
        trips_(trips),
        state_(std::move(state)),
        header_of_(graph.blocks.size(), kOutside),
        known_(graph.loops.size()) {
    result_.blocks.resize(graph.blocks.size());
    result_.loops.resize(graph.loops.size());
    for (size_t l = 0; l < graph.loops.size(); ++l)
      header_of_[static_cast<size_t>(graph.loops[l].header)] = static_cast<int>(l);
  }

  Result<ControlRun> run() && {
    run_region(kOutside, 0);
    if (steps_ > kMaxSteps)
      return error(Code::kUnsupported, "machine code whose loops take more than {} steps to follow",
                   kMaxSteps);
    result_.unknown_branches.assign(unknown_.begin(), unknown_.end());
    return std::move(result_);
  }

 private:
  // The effect of one entry of a loop with certain values.
  struct Effect {
    int exit = kOutside;             // the block behind it
    std::vector<int64_t> blocks;     // counts of the loop's blocks
    std::vector<LoopRun> loops;      // of the loop and those inside, in their order
    std::vector<ScalarValue> after;  // of the variables that it may write
  };

  // Runs from a block on until the loop, or the function, is left; returns the block behind it.
  int run_region(int loop, int block) {
    int64_t iterations = 0;
    while (block != kOutside && (loop == kOutside || graph_.contains(loop, block))) {
      const auto b = static_cast<size_t>(block);
      if (header_of_[b] != kOutside && header_of_[b] != loop) {
        block = run_loop(header_of_[b]);
        continue;
      }
      if (++steps_ > kMaxSteps) return kOutside;
      ++result_.blocks[b];
      if (header_of_[b] == loop && loop != kOutside) ++iterations;
      for (const ScalarInst& inst : slice_.blocks[b].insts) execute(inst, state_);
      block = next(block, loop, iterations);
    }
    if (loop != kOutside) {
      ++result_.loops[static_cast<size_t>(loop)].entries;
      result_.loops[static_cast<size_t>(loop)].iterations += iterations;
    }
    return block;
  }

  int next(int block, int loop, int64_t iterations) {
    const CodeBlock& code = graph_.blocks[static_cast<size_t>(block)];
    if (code.next.empty()) return kOutside;
    if (code.next.size() == 1) return code.next[0];
    const std::optional<bool> taken =
        holds(slice_.blocks[static_cast<size_t>(block)].condition, state_[kFlags]);
    if (taken) return code.next[*taken ? 1 : 0];
    const auto stays = [&](int to) { return to != kOutside && graph_.contains(loop, to); };
    if (loop != kOutside && stays(code.next[0]) != stays(code.next[1])) {
      const auto l = static_cast<size_t>(loop);
      result_.loops[l].known = false;
      const bool stay = iterations < (l < trips_.size() ? std::max<int64_t>(trips_[l], 1) : 1);
      return code.next[stay == stays(code.next[1]) ? 1 : 0];
    }
    unknown_.insert(body_[code.last].address);
    return code.next[is_guessed(slice_.blocks[static_cast<size_t>(block)].guess) ? 1 : 0];
  }

  [[nodiscard]] bool is_guessed(const BranchGuess& guess) const {
    if (guess.variable == kNoVariable) return false;
    const ScalarValue& value = state_[static_cast<size_t>(guess.variable)];
    return value.known && ((value.word & guess.bits) != 0) == guess.if_set;
  }

  int run_loop(int loop) {
    const auto l = static_cast<size_t>(loop);
    std::vector<uint64_t> key;
    for (const Variable v : slice_.read[l]) {
      const ScalarValue& value = state_[static_cast<size_t>(v)];
      key.push_back(value.known ? static_cast<uint64_t>(value.bits) : 0);
      key.push_back(value.known ? value.word : 0);
    }
    const auto found = known_[l].find(key);
    if (found != known_[l].end()) return repeat(loop, found->second);
    std::vector<int64_t> blocks;
    std::vector<LoopRun> loops;
    for (const int b : graph_.loops[l].blocks)
      blocks.push_back(result_.blocks[static_cast<size_t>(b)]);
    for (const size_t inner : slice_.inside[l]) loops.push_back(result_.loops[inner]);
    const int exit = run_region(loop, graph_.loops[l].header);
    if (num_known_ >= kMaxKnown) return exit;
    ++num_known_;
    Effect effect{
        .exit = exit, .blocks = std::move(blocks), .loops = std::move(loops), .after = {}};
    for (size_t i = 0; i < effect.blocks.size(); ++i)
      effect.blocks[i] =
          result_.blocks[static_cast<size_t>(graph_.loops[l].blocks[i])] - effect.blocks[i];
    for (size_t i = 0; i < effect.loops.size(); ++i) {
      const LoopRun& now = result_.loops[slice_.inside[l][i]];
      effect.loops[i].entries = now.entries - effect.loops[i].entries;
      effect.loops[i].iterations = now.iterations - effect.loops[i].iterations;
    }
    for (const Variable v : slice_.written[l])
      effect.after.push_back(state_[static_cast<size_t>(v)]);
    known_[l].emplace(std::move(key), std::move(effect));
    return exit;
  }

  int repeat(int loop, const Effect& effect) {
    const auto l = static_cast<size_t>(loop);
    for (size_t i = 0; i < effect.blocks.size(); ++i)
      result_.blocks[static_cast<size_t>(graph_.loops[l].blocks[i])] += effect.blocks[i];
    for (size_t i = 0; i < effect.loops.size(); ++i) {
      LoopRun& run = result_.loops[slice_.inside[l][i]];
      run.entries += effect.loops[i].entries;
      run.iterations += effect.loops[i].iterations;
    }
    for (size_t i = 0; i < effect.after.size(); ++i)
      state_[static_cast<size_t>(slice_.written[l][i])] = effect.after[i];
    return effect.exit;
  }

  const std::vector<Instruction>& body_;
  const FlowGraph& graph_;
  const ControlSlice slice_;
  const std::span<const int64_t> trips_;
  ScalarState state_;
  std::vector<int> header_of_;  // the loop of which a block is the header
  std::vector<std::map<std::vector<uint64_t>, Effect>> known_;  // per loop
  size_t num_known_ = 0;
  int64_t steps_ = 0;
  std::set<uint64_t> unknown_;
  ControlRun result_;
};

ScalarState state_of(const CallState& start, const ScalarCode& code) {
  ScalarState state(static_cast<size_t>(code.words.num_variables()));
  for (const auto& [v, value] : start.registers) state[static_cast<size_t>(v)] = value;
  for (const auto& [address, v] : code.words.all()) {
    const auto found = start.stack.find(address);
    if (found != start.stack.end()) state[static_cast<size_t>(v)] = found->second;
  }
  return state;
}

}  // namespace

// The arguments are the data, scratch memory, first, last, thread: on x86-64 by System V, on 64-bit
// Arm by AAPCS64. The calling convention of others is not known, nor is their code.
CallState kernel_call(int64_t first_tile, int64_t last_tile, const target::Cpu& target) {
  const bool is_arm = is_arm_code(target);
  CallState call{.stack_pointer = kStackTop - return_address_bytes(target)};
  call.registers[is_arm ? register_arm("X2") : register_x86("RDX")] = {
      true, 64, static_cast<uint64_t>(first_tile)};
  call.registers[is_arm ? register_arm("X3") : register_x86("RCX")] = {
      true, 64, static_cast<uint64_t>(last_tile)};
  return call;
}

Result<CallState> state_at_call(const std::vector<Instruction>& body, const CallState& start,
                                const target::Cpu& target) {
  HONE_ASSIGN_OR_RETURN(const FlowGraph graph, flow_graph(body));
  if (graph.blocks.size() != 1) return error(Code::kUnsupported, "an entry point with branches");
  const auto call = std::find_if(body.begin(), body.end(),
                                 [](const Instruction& i) { return i.flow == Flow::kCall; });
  const std::vector<Instruction> before(body.begin(), call);
  if (before.empty()) return start;
  HONE_ASSIGN_OR_RETURN(const FlowGraph part, flow_graph(before));
  const ScalarCode code = scalar_code(before, part, start.stack_pointer, target);
  ScalarState state = state_of(start, code);
  for (const ScalarInst& inst : code.blocks[0].insts) execute(inst, state);
  CallState at{.stack_pointer = code.end.pointer - return_address_bytes(target)};
  for (Variable v = kFirstRegister; v < kFirstWord; ++v)
    at.registers[v] = state[static_cast<size_t>(v)];
  for (const auto& [address, v] : code.words.all())
    at.stack[address] = state[static_cast<size_t>(v)];
  return at;
}

Result<ControlRun> run_control(const std::vector<Instruction>& body, const FlowGraph& graph,
                               const CallState& start, std::span<const int64_t> trips,
                               const target::Cpu& target) {
  const ScalarCode code = scalar_code(body, graph, start.stack_pointer, target);
  return Runner(body, graph, control_slice(graph, code), trips, state_of(start, code)).run();
}

}  // namespace hone::backend::cpu
