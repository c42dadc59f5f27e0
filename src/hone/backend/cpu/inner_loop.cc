#include "hone/backend/cpu/inner_loop.h"

#include <algorithm>
#include <array>
#include <set>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/instruction_mix.h"
#include "hone/backend/cpu/machine_code.h"

namespace hone::backend::cpu {
namespace {

// Instructions first.. last of a function.
struct Region {
  size_t first, last;
  [[nodiscard]] bool holds(const Region& other) const {
    return first <= other.first && other.last <= last &&
           (first != other.first || last != other.last);
  }
};

std::vector<Region> find_loops(const std::vector<Instruction>& body) {
  std::vector<Region> loops;
  for (size_t i = 0; i < body.size(); ++i) {
    if (!body[i].jumps_to || *body[i].jumps_to > body[i].address) continue;
    const auto target = std::lower_bound(
        body.begin(), body.end(), *body[i].jumps_to,
        [](const Instruction& x, uint64_t address) { return x.address < address; });
    if (target == body.end() || target->address != *body[i].jumps_to) continue;
    loops.push_back({static_cast<size_t>(target - body.begin()), i});
  }
  return loops;
}

// Returns the instructions of a loop that are in none of the loops inside it.
std::vector<Instruction> own_part(const std::vector<Instruction>& body, const Region& region,
                                  const std::vector<Region>& loops) {
  std::vector<bool> inside(body.size(), false);
  for (const Region& loop : loops) {
    for (size_t i = loop.first; region.holds(loop) && i <= loop.last; ++i) inside[i] = true;
  }
  std::vector<Instruction> own;
  for (size_t i = region.first; i <= region.last; ++i) {
    if (!inside[i]) own.push_back(body[i]);
  }
  return own;
}

// The stack pointer, and the frame pointer of a function that sets it up.
int stack_accesses(const std::vector<Instruction>& loop, const std::vector<Instruction>& body) {
  const bool frame = std::any_of(body.begin(), body.end(), [](const Instruction& i) {
    return i.text == "movq %rsp, %rbp" || i.text == "mov x29, sp" ||
           i.text.starts_with("add x29, sp");
  });
  return static_cast<int>(std::count_if(loop.begin(), loop.end(), [&](const Instruction& i) {
    return (i.loads || i.stores) &&
           std::any_of(i.registers.begin(), i.registers.end(), [&](const std::string& r) {
             return r == "RSP" || r == "SP" || (frame && (r == "RBP" || r == "FP"));
           });
  }));
}

InnerLoop describe(const Function& function, const Disassembler& code, const target::Cpu& target) {
  const std::vector<Region> loops = find_loops(function.body);
  std::vector<Instruction> chosen = function.body;
  InnerLoop inner;
  inner.is_loop = !loops.empty();
  // Multiply-adds, other work and what it reads, what is written. Moves between registers, as
  // where accumulators begin, are no work.
  std::array<int64_t, 3> most = {-1, -1, -1};
  for (const Region& loop : loops) {
    std::vector<Instruction> own = own_part(function.body, loop, loops);
    InstructionMix mix;
    for (const Instruction& i : own) count(i, mix);
    const std::array<int64_t, 3> amount = {mix.fma, mix.arithmetic + mix.shuffle + mix.load,
                                           mix.store};
    if (amount <= most) continue;
    most = amount;
    chosen = std::move(own);
  }
  std::set<int> numbers;
  for (const Instruction& i : chosen) {
    count(i, inner.mix);
    inner.bytes += static_cast<int64_t>(i.bytes);
    inner.text.push_back(i.text);
    for (const std::string& name : i.registers) {
      const auto found = vector_register(name);
      if (!found) continue;
      numbers.insert(found->number);
      inner.vector_bits = std::max(inner.vector_bits, found->bits);
    }
  }
  inner.vector_registers = static_cast<int>(numbers.size());
  inner.spills = stack_accesses(chosen, function.body);
  inner.port_cycles = std::max(static_cast<double>(inner.mix.fma) / target.fma_per_cycle,
                               static_cast<double>(inner.mix.load) / target.loads_per_cycle);
  inner.mca_cycles = code.simulate(chosen);
  return inner;
}

}  // namespace

Result<std::vector<InnerLoop>> inner_loops(const std::string& object,
                                           std::span<const EntryPoint> phases,
                                           const target::Cpu& target) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Disassembler> code, Disassembler::create(target));
  HONE_ASSIGN_OR_RETURN(const std::vector<Function> functions, code->functions(object));
  std::vector<InnerLoop> loops;
  for (const EntryPoint& phase : phases) {
    if (phase.prepare) continue;
    HONE_ASSIGN_OR_RETURN(const Function* body,
                          find_function(functions, phase.symbol + kBodySuffix));
    loops.push_back(describe(*body, *code, target));
    loops.back().symbol = phase.symbol;
  }
  return loops;
}

}  // namespace hone::backend::cpu
