// artifact/elf_object.h - writes and inspects ELF files (64-bit, little-endian): the relocatable
// object with an artifact's plan and weights, which needs no assembler, and the headers of a file
// before it is loaded. Section contents are streamed, so they are not copied in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::artifact {

enum class Machine : uint16_t { kX86_64 = 62, kAArch64 = 183 };  // value of e_machine
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
  std::vector<ElfBytes> contents;  // parts that are written one after the other
  std::vector<ElfRelocation> relocations;
  int64_t zeros = 0;  // kZeroed: the size of the section, which has no contents
};

struct ElfSymbol {
  std::string name;
  int section = -1;  // -1 if defined elsewhere
  int64_t offset = 0;
  int64_t size = 0;
  bool function = false;
  bool hidden = false;
};

struct ElfObject {
  Machine machine = Machine::kX86_64;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;  // all are global
};

[[nodiscard]] Status write_elf_object(const ElfObject& object, const std::string& path);

// Returns the bytes of one branch instruction for ElfRelocation::kBranch.
[[nodiscard]] std::string branch_instruction(Machine machine);

// Returns the machine of a relocatable object in memory; anything else is an error.
[[nodiscard]] Result<Machine> object_machine(std::string_view object);

// Returns the description of the first note with this owner in a shared library, or nullopt if
// there is none. `file` is an open descriptor, and `path` the name of the file for messages. It is
// an error if the file is not a shared library for this machine.
[[nodiscard]] Result<std::optional<std::string>> read_shared_library_note(int file,
                                                                          const std::string& path,
                                                                          std::string_view owner);

}  // namespace hone::artifact
