#include "hone/backend/gpu/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace hone::backend::gpu {
namespace {

constexpr size_t kInstructionBytes = 16;
constexpr std::string_view kCode = ".text.";  // and the symbol: the section of a kernel's code
constexpr uint64_t kStackPointer = 1;         // the register that has it

// An entry of .nv.info: a format, an attribute, and two bytes that are the size of what follows
// where the format is this one.
constexpr uint8_t kSized = 4;
enum Attribute : uint8_t { kFrameSize = 0x11, kStackSize = 0x12, kRegisterCount = 0x2f };

// Reads a value at a place of a file; nothing if it lies outside.
template <typename T>
bool read(std::string_view file, uint64_t place, T& out) {
  if (place > file.size() || file.size() - place < sizeof(T)) return false;
  std::memcpy(&out, file.data() + place, sizeof(T));
  return true;
}

struct Section {
  std::string_view name, bytes;
  uint32_t symbol = 0;  // of the code of a kernel: its number in the table of symbols
};

Result<std::vector<Section>> sections(std::string_view file) {
  const auto damaged = [] { return invalid("the cubin is not valid"); };
  Elf64_Ehdr header;
  if (!read(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return damaged();
  const auto entry = [&](uint64_t number, Elf64_Shdr& out) {
    return read(file, header.e_shoff + number * sizeof(Elf64_Shdr), out);
  };
  Elf64_Shdr names;
  if (!entry(header.e_shstrndx, names)) return damaged();
  std::vector<Section> all;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr found;
    if (!entry(i, found) || names.sh_offset > file.size() ||
        found.sh_name > file.size() - names.sh_offset)
      return damaged();
    const std::string_view rest = file.substr(names.sh_offset + found.sh_name);
    // The upper bits of `sh_info` are registers in older files.
    Section& made = all.emplace_back(rest.substr(0, rest.find('\0')), "", found.sh_info & 0xffffff);
    if (found.sh_type == SHT_NOBITS) continue;
    if (found.sh_offset > file.size() || found.sh_size > file.size() - found.sh_offset)
      return damaged();
    made.bytes = file.substr(found.sh_offset, found.sh_size);
  }
  return all;
}

Result<std::string_view> section(const std::vector<Section>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Section& section) { return section.name == name; });
  if (found == all.end()) return error(Code::kNotFound, "the cubin has no section {}", name);
  return found->bytes;
}

// Returns attributes of functions by the number of the function's symbol.
std::map<uint32_t, KernelNote> read_attributes(std::string_view info) {
  std::map<uint32_t, KernelNote> notes;
  for (size_t at = 0; at + 4 <= info.size();) {
    uint8_t format = 0, attribute = 0;
    uint16_t size = 0;
    read(info, at, format), read(info, at + 1, attribute), read(info, at + 2, size);
    uint32_t symbol = 0, value = 0;
    if (format == kSized && read(info, at + 4, symbol) && read(info, at + 8, value)) {
      KernelNote& note = notes[symbol];
      if (attribute == kRegisterCount) note.registers = static_cast<int>(value);
      // That of the kernel, and that with the functions that it calls.
      if (attribute == kFrameSize || attribute == kStackSize)
        note.stack_bytes = std::max<int64_t>(note.stack_bytes, value);
    }
    at += format == kSized ? size_t{4} + size : 4;
  }
  return notes;
}

// A load or store of the stack. Registers that ran out are at the stack pointer and a number.
void count_local(uint64_t low, uint64_t high, CubinInstructions& out) {
  ++out.local;
  const bool is_store = (low & 0x1ff) == 0x187;
  if (((low >> 24) & 0xff) != kStackPointer) {
    ++out.local_places;
  } else if (is_store) {
    const uint64_t size = (high >> 9) & 7;  // 1, 1, 2, 2, 4, 8, 16 bytes
    out.fixed_bytes += size < 2 ? 1 : size < 4 ? 2 : int64_t{1} << (size - 2);
  }
}

// The upper 3 of the 12 bits say where operands come from: registers, constants, the instruction.
void count(uint64_t instruction, uint64_t high, CubinInstructions& out) {
  if ((instruction & 0xfff) == 0x918) return;  // NOP
  ++out.all;
  switch (instruction & 0x1ff) {
    case 0x023:                             // FFMA
    case 0x02b:                             // DFMA
    case 0x031: ++out.fma; break;           // HFMA2
    case 0x037:                             // IMMA
    case 0x03c:                             // HMMA
    case 0x03f: ++out.matrix; break;        // DMMA
    case 0x009:                             // FMNMX
    case 0x00b:                             // FSETP
    case 0x020:                             // FMUL
    case 0x021:                             // FADD
    case 0x028:                             // DMUL
    case 0x029:                             // DADD
    case 0x108: ++out.arithmetic; break;    // MUFU: exponentials, roots, sines
    case 0x181: ++out.global_load; break;   // LDG
    case 0x186: ++out.global_store; break;  // STG
    case 0x03b:
      ++out.load_matrix;  // LDSM, a load, too
      [[fallthrough]];
    case 0x184: ++out.shared_load; break;                    // LDS
    case 0x188: ++out.shared_store; break;                   // STS
    case 0x183:                                              // LDL
    case 0x187: count_local(instruction, high, out); break;  // STL
    case 0x1ae: ++out.async_copy; break;                     // LDGSTS
    case 0x11d: ++out.barrier; break;                        // BAR
    default: break;
  }
}

CubinInstructions count(std::string_view code) {
  CubinInstructions out;
  out.bytes = static_cast<int64_t>(code.size());
  for (size_t at = 0; at + kInstructionBytes <= code.size(); at += kInstructionBytes) {
    uint64_t instruction = 0, high = 0;
    if (read(code, at, instruction) && read(code, at + 8, high)) count(instruction, high, out);
  }
  return out;
}

}  // namespace

Result<CubinInstructions> count_instructions(std::string_view cubin, std::string_view symbol) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Section> all, sections(cubin));
  HONE_ASSIGN_OR_RETURN(const std::string_view code,
                        section(all, std::string(kCode) + std::string(symbol)));
  return count(code);
}

Result<std::vector<KernelNote>> read_kernels(std::string_view cubin) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Section> all, sections(cubin));
  HONE_ASSIGN_OR_RETURN(const std::string_view info, section(all, ".nv.info"));
  const std::map<uint32_t, KernelNote> attributes = read_attributes(info);
  std::vector<KernelNote> notes;
  for (const Section& s : all) {
    if (!s.name.starts_with(kCode)) continue;
    const std::string symbol(s.name.substr(kCode.size()));
    const auto found = attributes.find(s.symbol);
    if (found == attributes.end() || found->second.registers == 0)
      return invalid("the cubin does not say what registers {} takes", symbol);
    KernelNote& note = notes.emplace_back(found->second);
    note.symbol = symbol;
    const CubinInstructions code = count(s.bytes);
    if (code.local_places == 0) note.spill_bytes = code.fixed_bytes;
  }
  return notes;
}

Result<CodeFigures> read_figures(std::string_view cubin, const std::vector<KernelNote>& kernels) {
  CodeFigures all;
  for (const KernelNote& note : kernels) {
    HONE_ASSIGN_OR_RETURN(const CubinInstructions code, count_instructions(cubin, note.symbol));
    all.registers = std::max<int64_t>(all.registers, note.registers);
    all.stack_bytes = std::max(all.stack_bytes, note.stack_bytes);
    all.spill_bytes = std::max(all.spill_bytes, note.spill_bytes);
    all.shared_bytes = std::max(all.shared_bytes, note.shared_bytes);
    all.instructions += code.all;
    all.multiply_adds += code.fma;
    all.matrix += code.matrix;
    all.global_loads += code.global_load;
    all.global_stores += code.global_store;
    all.shared_loads += code.shared_load;
    all.shared_stores += code.shared_store;
    all.local_accesses += code.local;
    all.async_copies += code.async_copy;
    all.barriers += code.barrier;
  }
  return all;
}

}  // namespace hone::backend::gpu
