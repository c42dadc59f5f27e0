#include "hone/backend/cpu/count_code.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "hone/backend/cpu/control_run.h"
#include "hone/backend/cpu/core_steps.h"
#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/instruction_mix.h"
#include "hone/backend/cpu/list_schedule.h"
#include "hone/backend/cpu/match_loops.h"

namespace hone::backend::cpu {
namespace {

// LLVM's model runs so many instructions of a block, in 4 to 100 iterations: long blocks need few.
constexpr size_t kMostSimulated = 5000;

// Adds what the blocks of a function execute, to the sum and to their loops.
void add_executed(const Function& function, const FlowGraph& graph, const ControlRun& run,
                  CountedCode& counted) {
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    const CodeBlock& block = graph.blocks[b];
    InstructionMix mix;
    for (size_t i = block.first; i <= block.last; ++i) count(function.body[i], mix);
    add(counted.executed, mix, run.blocks[b]);
    if (block.loop != kOutside)
      counted.loops[static_cast<size_t>(block.loop)].instructions += mix.all * run.blocks[b];
  }
}

// Returns the code directly inside a loop, by how often it runs. Calls and returns are left out,
// which LLVM's model cannot simulate.
std::map<int64_t, std::vector<Instruction>> own_code(const Function& function,
                                                     const FlowGraph& graph, const ControlRun& run,
                                                     int loop) {
  std::map<int64_t, std::vector<Instruction>> own;
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    const CodeBlock& block = graph.blocks[b];
    if (block.loop != loop || run.blocks[b] == 0) continue;
    const auto first = function.body.begin() + static_cast<int64_t>(block.first);
    const auto last = function.body.begin() + static_cast<int64_t>(block.last);
    std::vector<Instruction>& part = own[run.blocks[b]];
    std::copy_if(first, last + 1, std::back_inserter(part), [](const Instruction& i) {
      return i.flow != Flow::kCall && i.flow != Flow::kReturn;
    });
  }
  return own;
}

// The models that tell cycles: the list scheduler's, and LLVM's unless it is null.
struct CycleModels {
  const target::Cpu& target;
  const Disassembler* simulator;
};

// Adds the cycles of what a function executes, to the sum and to its loops.
void add_cycles(const Function& function, const FlowGraph& graph, const ControlRun& run,
                const CycleModels& models, CountedCode& counted) {
  const CoreModel& core = core_model(models.target);
  for (int l = kOutside; l < static_cast<int>(graph.loops.size()); ++l) {
    double cycles = 0, mca_cycles = 0;
    for (const auto& [times, part] : own_code(function, graph, run, l)) {
      if (part.empty()) continue;
      const size_t iterations = std::clamp<size_t>(kMostSimulated / part.size(), 4, 100);
      const auto runs = static_cast<double>(times);
      cycles += runs * list_schedule(core_steps(part), core);
      if (models.simulator != nullptr)
        mca_cycles += runs * models.simulator->simulate(part, static_cast<unsigned>(iterations));
    }
    counted.cycles += cycles;
    counted.mca_cycles += mca_cycles;
    if (l == kOutside) continue;
    CountedLoop& loop = counted.loops[static_cast<size_t>(l)];
    const double iterations = static_cast<double>(std::max<int64_t>(loop.iterations, 1));
    loop.cycles = cycles / iterations;
    loop.mca_cycles = mca_cycles / iterations;
  }
}

Status count_phase(const Function& entry, const Function& work, const ir::Stmt& program,
                   const TileRange& tiles, const CycleModels& models, CountedCode& counted) {
  const target::Cpu& target = models.target;
  for (const Instruction& i : entry.body) count(i, counted.executed);
  HONE_ASSIGN_OR_RETURN(
      const CallState start,
      state_at_call(entry.body, kernel_call(tiles.first, tiles.last, target), target));
  HONE_ASSIGN_OR_RETURN(const FlowGraph graph, flow_graph(work.body));
  HONE_ASSIGN_OR_RETURN(ControlRun run, run_control(work.body, graph, start, {}, target));
  const auto match = [&] {
    return match_loops(graph, run.loops, program, tiles.last - tiles.first, target);
  };
  std::vector<MatchedLoop> matched = match();
  const bool all_known = std::all_of(run.loops.begin(), run.loops.end(),
                                     [](const LoopRun& loop) { return loop.known; });
  if (!all_known) {  // ends that the code does not tell are those of the program
    std::vector<int64_t> trips;
    for (const MatchedLoop& loop : matched) trips.push_back(loop.trips);
    HONE_ASSIGN_OR_RETURN(run, run_control(work.body, graph, start, trips, target));
  }
  using Source = CountedLoop::Source;
  for (size_t l = 0; l < graph.loops.size(); ++l) {
    const LoopRun& loop = run.loops[l];
    const bool by_program = matched[l].trips > 0;
    counted.loops.push_back({.name = matched[l].name,
                             .depth = graph.loops[l].depth,
                             .entries = loop.entries,
                             .iterations = loop.iterations,
                             .source = loop.known   ? Source::kCode
                                       : by_program ? Source::kProgram
                                                    : Source::kAssumed});
  }
  counted.unknown_branches = static_cast<int64_t>(run.unknown_branches.size());
  add_executed(work, graph, run, counted);
  add_cycles(work, graph, run, models, counted);
  return ok_status();
}

}  // namespace

Result<std::vector<CountedCode>> count_code(const std::string& object,
                                            std::span<const EntryPoint> phases,
                                            const ir::Program& program, const target::Cpu& target,
                                            std::optional<TileRange> tiles, bool simulates) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Disassembler> code, Disassembler::create(target));
  HONE_ASSIGN_OR_RETURN(const std::vector<Function> functions, code->functions(object));
  const CycleModels models{target, simulates ? code.get() : nullptr};
  std::vector<CountedCode> all;
  for (size_t p = 0; p < phases.size(); ++p) {
    const EntryPoint& phase = phases[p];
    if (phase.prepare) continue;
    HONE_ASSIGN_OR_RETURN(const Function* entry, find_function(functions, phase.symbol));
    HONE_ASSIGN_OR_RETURN(const Function* work,
                          find_function(functions, phase.symbol + kBodySuffix));
    const TileRange range = tiles.value_or(TileRange{0, phase.num_tiles});
    CountedCode& counted = all.emplace_back();
    counted.symbol = phase.symbol;
    counted.tiles = range.last - range.first;
    const Status status =
        count_phase(*entry, *work, program.phases.at(p).body, range, models, counted);
    if (status.ok()) continue;
    if (status.code() != Code::kUnsupported) return status;
    counted.failure = status.message();
    counted.executed = {};
    counted.cycles = counted.mca_cycles = 0;
  }
  return all;
}

}  // namespace hone::backend::cpu

namespace hone {

bool CountedCode::exact() const {
  return failure.empty() && unknown_branches == 0 &&
         std::all_of(loops.begin(), loops.end(), [](const CountedLoop& loop) {
           return loop.source == CountedLoop::Source::kCode;
         });
}

}  // namespace hone
