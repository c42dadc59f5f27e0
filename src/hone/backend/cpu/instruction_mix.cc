#include "hone/backend/cpu/instruction_mix.h"

#include <algorithm>
#include <cctype>

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

bool is_vector(const Instruction& i) {
  return std::any_of(i.registers.begin(), i.registers.end(),
                     [](const std::string& name) { return vector_register(name).has_value(); });
}

}  // namespace

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

void count(const Instruction& i, InstructionMix& mix) {
  const std::string name = i.mnemonic();
  ++mix.all;
  mix.branch += i.flow != Flow::kNext ? 1 : 0;
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

void add(InstructionMix& sum, const InstructionMix& mix, int64_t times) {
  for (int64_t InstructionMix::*const part :
       {&InstructionMix::all, &InstructionMix::fma, &InstructionMix::arithmetic,
        &InstructionMix::load, &InstructionMix::store, &InstructionMix::broadcast,
        &InstructionMix::shuffle, &InstructionMix::prefetch, &InstructionMix::scalar,
        &InstructionMix::branch})
    sum.*part += times * mix.*part;
}

}  // namespace hone::backend::cpu
