// codegen/elf_object.h - writes and inspects ELF files (64-bit, little-endian): the relocatable
// object that carries an artifact's plan and weights, without an assembler, and what a file says of
// itself before anybody loads it. Section contents are streamed: nothing is copied in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::codegen {

enum class Machine : uint16_t { kX86_64 = 62, kAArch64 = 183 };  // e_machine
[[nodiscard]] std::string_view machine_name(Machine machine);
[[nodiscard]] Machine host_machine();

struct ElfBytes {
  const void* data = nullptr;
  int64_t size = 0;
};

// A pointer to symbol + addend at an offset of a section, or a branch (a whole instruction) to it.
struct ElfRelocation {
  enum Kind { kPointer, kBranch };
  Kind kind = kPointer;
  int64_t offset = 0;
  int symbol = 0;  // index into ElfObject::symbols
  int64_t addend = 0;
};

struct ElfSection {
  std::string name;
  enum Kind { kReadOnly, kRelocatedData, kCode, kNote, kZeroed } kind = kReadOnly;
  int64_t alignment = 1;
  std::vector<ElfBytes> contents;  // one after the other
  std::vector<ElfRelocation> relocations;
  int64_t zeros = 0;  // kZeroed: the size; it has no contents
};

struct ElfSymbol {
  std::string name;
  int section = -1;  // -1: defined elsewhere
  int64_t offset = 0;
  int64_t size = 0;
  bool function = false;
  bool hidden = false;
};

struct ElfObject {
  Machine machine = Machine::kX86_64;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;  // all global
};

[[nodiscard]] Status write_elf_object(const ElfObject& object, const std::string& path);

// The bytes of one branch instruction for ElfRelocation::kBranch.
[[nodiscard]] std::string branch_instruction(Machine machine);

// The machine of a relocatable object in memory; an error if it is none.
[[nodiscard]] Result<Machine> object_machine(std::string_view object);

// The description of the first note with this owner in a shared library; nullopt if there is none.
// An error if the file is not a shared library for this machine.
[[nodiscard]] Result<std::optional<std::string>> read_shared_library_note(const std::string& path,
                                                                          std::string_view owner);

}  // namespace hone::codegen
