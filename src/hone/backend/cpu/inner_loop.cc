#include "hone/backend/cpu/inner_loop.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/machine_code.h"

namespace hone::backend::cpu {
namespace {

// Beginnings of mnemonics, x86-64 then AArch64.
constexpr std::string_view kFma[] = {"vfmadd",   "vfmsub",   "vfnmadd", "vfnmsub", "vdpbf16ps",
                                     "vpdpbusd", "vpdpwssd", "tdp",     "fmla",    "fmls",
                                     "fmadd",    "fmsub",    "fnmadd",  "bfdot",   "bfmmla",
                                     "sdot",     "udot",     "usdot",   "smmla",   "ummla"};
constexpr std::string_view kBroadcast[] = {"vbroadcast", "vpbroadcast", "ld1r", "dup"};
constexpr std::string_view kShuffle[] = {
    "vperm",    "vpperm",    "vshuf",     "vpshuf", "vunpck",    "vpunpck",    "vinsert",
    "vextract", "vpinsr",    "vpextr",    "valign", "vpalign",   "vblend",     "vpblend",
    "vmovddup", "vmovsldup", "vmovshdup", "vpack",  "vcompress", "vpcompress", "vexpand",
    "vpexpand", "zip1",      "zip2",      "uzp1",   "uzp2",      "trn1",       "trn2",
    "ext",      "tbl",       "rev64",     "rev32",  "ins"};
constexpr std::string_view kMove[] = {"vmov", "mov", "ldr",  "ldp", "ldur",    "ld1",
                                      "str",  "stp", "stur", "st1", "vgather", "vscatter"};
constexpr std::string_view kPrefetch[] = {"prefetch", "prfm", "prfum"};

template <size_t N>
bool is_one_of(std::string_view mnemonic, const std::string_view (&beginnings)[N]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view b) { return mnemonic.starts_with(b); });
}

struct VectorRegister {
  int number, bits;
};
// "ZMM12" -> 12, 512; nothing for other registers.
std::optional<VectorRegister> vector_register(std::string_view name) {
  struct Kind {
    std::string_view prefix;
    int bits;
  };
  constexpr Kind kKinds[] = {{"XMM", 128}, {"YMM", 256}, {"ZMM", 512}, {"Q", 128},
                             {"D", 64},    {"S", 32},    {"H", 16},    {"Z", 128}};
  for (const Kind& kind : kKinds) {
    if (!name.starts_with(kind.prefix)) continue;
    const std::string_view digits = name.substr(kind.prefix.size());
    const bool number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (number) return VectorRegister{std::atoi(std::string(digits).c_str()), kind.bits};
  }
  return std::nullopt;
}

bool is_vector(const Instruction& i) {
  return std::any_of(i.registers.begin(), i.registers.end(),
                     [](const std::string& name) { return vector_register(name).has_value(); });
}

void count(const Instruction& i, InstructionMix& mix) {
  const std::string name = i.mnemonic();
  ++mix.all;
  if (is_one_of(name, kPrefetch)) {
    ++mix.prefetch;
    return;
  }
  mix.load += i.loads ? 1 : 0;
  mix.store += i.stores ? 1 : 0;
  if (!is_vector(i)) {
    ++mix.scalar;
    return;
  }
  const bool fma = is_one_of(name, kFma);
  const bool broadcast = is_one_of(name, kBroadcast) || i.text.find("{1to") != std::string::npos;
  const bool shuffle = is_one_of(name, kShuffle);
  mix.fma += fma ? 1 : 0;
  mix.broadcast += broadcast ? 1 : 0;
  mix.shuffle += shuffle ? 1 : 0;
  if (!fma && !shuffle && !is_one_of(name, kBroadcast) && !is_one_of(name, kMove)) ++mix.arithmetic;
}

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
  std::array<int, 3> most = {-1, -1, -1};
  for (const Region& loop : loops) {
    std::vector<Instruction> own = own_part(function.body, loop, loops);
    InstructionMix mix;
    for (const Instruction& i : own) count(i, mix);
    const std::array<int, 3> amount = {mix.fma, mix.arithmetic + mix.shuffle + mix.load, mix.store};
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
    const auto body = std::find_if(functions.begin(), functions.end(), [&](const Function& f) {
      return f.name == phase.symbol + kBodySuffix;
    });
    if (body == functions.end())
      return error(Code::kInternal, "compiled code has no function for {}", phase.symbol);
    loops.push_back(describe(*body, *code, target));
    loops.back().symbol = phase.symbol;
  }
  return loops;
}

}  // namespace hone::backend::cpu
