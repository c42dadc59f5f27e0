#include "hone/artifact/elf_object.h"

#include <elf.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "hone/base/file.h"
#include "hone/base/round_up.h"

namespace hone::artifact {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// A growing string table; equal strings share an entry.
class StringTable {
 public:
  uint32_t add(const std::string& text) {
    const auto [entry, is_new] = places_.emplace(text, static_cast<uint32_t>(bytes_.size()));
    if (is_new) bytes_.append(text).push_back('\0');
    return entry->second;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
  std::map<std::string, uint32_t> places_ = {{"", 0}};
};

struct RelocationTypes {
  uint32_t pointer;
  uint32_t branch;
  int64_t branch_offset;  // place of the field in the instruction
  int64_t branch_addend;
};

RelocationTypes relocation_types(Machine machine) {
  if (machine == Machine::kAArch64) return {R_AARCH64_ABS64, R_AARCH64_JUMP26, 0, 0};
  return {R_X86_64_64, R_X86_64_PLT32, 1, -4};
}

int64_t content_bytes(const ElfSection& section) {
  int64_t total = section.zeros;
  for (const ElfBytes& bytes : section.contents) total += bytes.size;
  return total;
}

Elf64_Shdr section_header(const ElfSection& section, Machine machine) {
  Elf64_Shdr header = {};
  header.sh_type = section.kind == ElfSection::kNote ? SHT_NOTE : SHT_PROGBITS;
  if (section.kind == ElfSection::kZeroed) header.sh_type = SHT_NOBITS;
  header.sh_flags = SHF_ALLOC;
  if (section.kind == ElfSection::kCode) header.sh_flags |= SHF_EXECINSTR;
  if (section.kind == ElfSection::kRelocatedData || section.kind == ElfSection::kZeroed)
    header.sh_flags |= SHF_WRITE;
  constexpr uint64_t kLarge = 0x10000000;  // SHF_X86_64_LARGE: may lie beyond 2 GiB
  if (machine == Machine::kX86_64 && section.name == ".lrodata") header.sh_flags |= kLarge;
  header.sh_addralign = static_cast<uint64_t>(section.alignment);
  header.sh_size = static_cast<uint64_t>(content_bytes(section));
  return header;
}

std::string symbol_table(const ElfObject& object, StringTable& names) {
  std::vector<Elf64_Sym> symbols(1 + object.symbols.size());
  for (size_t i = 0; i < object.symbols.size(); ++i) {
    const ElfSymbol& symbol = object.symbols[i];
    Elf64_Sym& entry = symbols[i + 1];
    entry.st_name = names.add(symbol.name);
    const int type = symbol.section < 0 ? STT_NOTYPE : symbol.function ? STT_FUNC : STT_OBJECT;
    entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type));
    entry.st_other = symbol.hidden ? STV_HIDDEN : STV_DEFAULT;
    entry.st_shndx = static_cast<uint16_t>(symbol.section < 0 ? 0 : symbol.section + 1);
    entry.st_value = static_cast<uint64_t>(symbol.offset);
    entry.st_size = static_cast<uint64_t>(symbol.size);
  }
  return {reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(Elf64_Sym)};
}

std::string relocation_table(const ElfSection& section, Machine machine) {
  const RelocationTypes types = relocation_types(machine);
  std::string table;
  for (const ElfRelocation& relocation : section.relocations) {
    const bool branch = relocation.kind == ElfRelocation::kBranch;
    Elf64_Rela entry = {};
    entry.r_offset = static_cast<uint64_t>(relocation.offset + (branch ? types.branch_offset : 0));
    entry.r_info = ELF64_R_INFO(static_cast<uint64_t>(relocation.symbol) + 1,
                                branch ? types.branch : types.pointer);
    entry.r_addend = relocation.addend + (branch ? types.branch_addend : 0);
    table.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
  return table;
}

// Writes bytes at rising offsets, with zeros between.
class Stream {
 public:
  explicit Stream(FILE* file) : file_(file) {}
  bool pad_to(uint64_t offset) {
    static const char zeros[64] = {};
    while (position_ < offset) {
      const uint64_t step = std::min<uint64_t>(sizeof zeros, offset - position_);
      if (!write(zeros, step)) return false;
    }
    return true;
  }
  bool write(const void* data, uint64_t size) {
    position_ += size;
    return size == 0 || std::fwrite(data, 1, size, file_) == size;
  }

 private:
  FILE* file_;
  uint64_t position_ = 0;
};

// The sections: none, the object's own, then tables: symbols, relocations of the own ones, an empty
// .note.GNU-stack that says the stack need not be executable, names.
struct FileLayout {
  std::vector<Elf64_Shdr> headers = std::vector<Elf64_Shdr>(1);
  std::vector<std::string> tables;  // contents of the sections that follow the object's own
  size_t symbols = 0, strings = 0;  // which sections they are
  uint64_t end = 0;                 // end of the last one in the file

  explicit FileLayout(const ElfObject& object) {
    for (const ElfSection& section : object.sections) {
      headers.push_back(section_header(section, object.machine));
      headers.back().sh_name = names_.add(section.name);
    }
    symbols = add_table(".symtab", SHT_SYMTAB, symbol_table(object, names_));
    add_relocations(object);
    add_table(".note.GNU-stack", SHT_PROGBITS, "");
    add_strings();
    headers[symbols].sh_entsize = sizeof(Elf64_Sym);
    headers[symbols].sh_link = static_cast<uint32_t>(strings);
    headers[symbols].sh_info = 1;  // the first global symbol
    place();
  }

 private:
  size_t add_table(const std::string& name, uint32_t type, std::string bytes) {
    Elf64_Shdr header = {};
    header.sh_name = names_.add(name);
    header.sh_type = type;
    header.sh_addralign = 8;
    header.sh_size = bytes.size();
    headers.push_back(header);
    tables.push_back(std::move(bytes));
    return headers.size() - 1;
  }
  void add_relocations(const ElfObject& object) {
    for (size_t i = 0; i < object.sections.size(); ++i) {
      const ElfSection& section = object.sections[i];
      if (section.relocations.empty()) continue;
      const size_t place =
          add_table(".rela" + section.name, SHT_RELA, relocation_table(section, object.machine));
      headers[place].sh_entsize = sizeof(Elf64_Rela);
      headers[place].sh_link = static_cast<uint32_t>(symbols);
      headers[place].sh_info = static_cast<uint32_t>(i + 1);
      headers[place].sh_flags = SHF_INFO_LINK;
    }
  }
  // Last, as every section's name is in it, its own too.
  void add_strings() {
    strings = add_table(".strtab", SHT_STRTAB, "");
    tables.back() = names_.bytes();
    headers[strings].sh_size = tables.back().size();
  }
  void place() {
    end = sizeof(Elf64_Ehdr);
    for (size_t i = 1; i < headers.size(); ++i) {
      headers[i].sh_offset = round_up(end, std::max<uint64_t>(headers[i].sh_addralign, 1));
      end = headers[i].sh_offset + (headers[i].sh_type == SHT_NOBITS ? 0 : headers[i].sh_size);
    }
  }

  StringTable names_;
};

Elf64_Ehdr file_header(const ElfObject& object, const FileLayout& layout) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = static_cast<uint16_t>(object.machine);
  header.e_version = EV_CURRENT;
  header.e_shoff = round_up(layout.end, 8);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(layout.headers.size());
  header.e_shstrndx = static_cast<uint16_t>(layout.strings);
  return header;
}

bool write_sections(const ElfObject& object, const FileLayout& layout, FILE* file) {
  const Elf64_Ehdr header = file_header(object, layout);
  Stream stream(file);
  bool ok = stream.write(&header, sizeof header);
  for (size_t i = 1; i < layout.headers.size() && ok; ++i) {
    ok = stream.pad_to(layout.headers[i].sh_offset);
    if (i <= object.sections.size()) {
      for (const ElfBytes& bytes : object.sections[i - 1].contents)
        ok = ok && stream.write(bytes.data, static_cast<uint64_t>(bytes.size));
    } else {
      const std::string& table = layout.tables[i - 1 - object.sections.size()];
      ok = ok && stream.write(table.data(), table.size());
    }
  }
  return ok && stream.pad_to(header.e_shoff) &&
         stream.write(layout.headers.data(), layout.headers.size() * sizeof(Elf64_Shdr));
}

}  // namespace

std::string_view machine_name(Machine machine) {
  return machine == Machine::kAArch64 ? "AArch64" : "x86-64";
}

Machine host_machine() {
#if defined(__aarch64__)
  return Machine::kAArch64;
#else
  return Machine::kX86_64;
#endif
}

std::string branch_instruction(Machine machine) {
  if (machine == Machine::kAArch64) return std::string("\x00\x00\x00\x14", 4);  // b
  return std::string("\xe9\x00\x00\x00\x00", 5);                                // jmp rel32
}

Status write_elf_object(const ElfObject& object, const std::string& path) {
  const FileLayout layout(object);
  if (layout.headers.size() >= SHN_LORESERVE)
    return invalid("{} sections are too many", layout.headers.size());
  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (file == nullptr) return error(Code::kIo, "cannot write {}: {}", path, errno_text(errno));
  const bool written = write_sections(object, layout, file.get());
  if (std::fclose(file.release()) != 0 || !written)
    return error(Code::kIo, "cannot write {}: {}", path, errno_text(errno));
  return ok_status();
}

}  // namespace hone::artifact
