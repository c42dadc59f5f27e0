#include "hone/backend/gpu/cubin.h"

#include <elf.h>

#include <cstring>

namespace hone::backend::gpu {
namespace {

constexpr size_t kInstructionBytes = 16;

// Reads a value at a place of a file; nothing if it lies outside.
template <typename T>
bool read(std::string_view file, uint64_t place, T& out) {
  if (place > file.size() || file.size() - place < sizeof(T)) return false;
  std::memcpy(&out, file.data() + place, sizeof(T));
  return true;
}

// Finds the section of this name.
Result<std::string_view> section(std::string_view file, std::string_view name) {
  const auto damaged = [] { return invalid("the cubin is not valid"); };
  Elf64_Ehdr header;
  if (!read(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return damaged();
  const auto entry = [&](uint64_t number, Elf64_Shdr& out) {
    return read(file, header.e_shoff + number * sizeof(Elf64_Shdr), out);
  };
  Elf64_Shdr names;
  if (!entry(header.e_shstrndx, names)) return damaged();
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr found;
    if (!entry(i, found) || names.sh_offset + found.sh_name > file.size()) return damaged();
    const std::string_view rest = file.substr(names.sh_offset + found.sh_name);
    if (rest.substr(0, rest.find('\0')) != name) continue;
    if (found.sh_offset > file.size() || found.sh_size > file.size() - found.sh_offset)
      return damaged();
    return file.substr(found.sh_offset, found.sh_size);
  }
  return error(Code::kNotFound, "the cubin has no section {}", name);
}

// The upper 3 of the 12 bits say where operands come from: registers, constants, the instruction.
void count(uint64_t instruction, CubinInstructions& out) {
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
    case 0x184: ++out.shared_load; break;   // LDS
    case 0x188: ++out.shared_store; break;  // STS
    case 0x183:                             // LDL
    case 0x187: ++out.local; break;         // STL
    case 0x1ae: ++out.async_copy; break;    // LDGSTS
    case 0x11d: ++out.barrier; break;       // BAR
    default: break;
  }
}

}  // namespace

Result<CubinInstructions> count_instructions(std::string_view cubin, std::string_view symbol) {
  HONE_ASSIGN_OR_RETURN(const std::string_view code,
                        section(cubin, ".text." + std::string(symbol)));
  CubinInstructions out;
  out.bytes = static_cast<int64_t>(code.size());
  for (size_t at = 0; at + kInstructionBytes <= code.size(); at += kInstructionBytes) {
    uint64_t instruction = 0;
    if (read(code, at, instruction)) count(instruction, out);
  }
  return out;
}

}  // namespace hone::backend::gpu
