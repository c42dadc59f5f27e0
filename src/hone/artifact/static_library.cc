#include "hone/artifact/static_library.h"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "hone/artifact/elf_object.h"
#include "hone/artifact/file_at.h"
#include "hone/base/file.h"

namespace hone::artifact {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

constexpr char kArchiveMagic[] = "!<arch>\n";
constexpr int64_t kMaxMemberBytes = 9'999'999'999;     // ten digits
constexpr uint32_t kAddressSignificance = 0x6fff4c03;  // SHT_LLVM_ADDRSIG: a list of symbols

// A relocatable object, of which parts are read, changed and written back.
class ObjectFile {
 public:
  static Result<ObjectFile> open(const std::string& path) {
    File file(std::fopen(path.c_str(), "r+b"), std::fclose);
    if (file == nullptr) return error(Code::kIo, "cannot read {}: {}", path, errno_text(errno));
    ObjectFile object(path, std::move(file));
    std::fseek(object.file_.get(), 0, SEEK_END);
    object.bytes_ = static_cast<uint64_t>(std::ftell(object.file_.get()));
    Elf64_Ehdr header;
    HONE_RETURN_IF_ERROR(object.read(0, &header, sizeof header));
    HONE_RETURN_IF_ERROR(
        object_machine({reinterpret_cast<const char*>(&header), sizeof header}).status());
    object.section_table_ = header.e_shoff;
    object.sections_.resize(header.e_shnum);
    HONE_RETURN_IF_ERROR(object.read(header.e_shoff, object.sections_.data(),
                                     object.sections_.size() * sizeof(Elf64_Shdr)));
    return object;
  }
  [[nodiscard]] std::vector<Elf64_Shdr>& sections() { return sections_; }
  template <typename T>
  Result<std::vector<T>> contents(const Elf64_Shdr& section) {
    if (section.sh_size > bytes_) return invalid("{} is not an object file: it is cut off", path_);
    std::vector<T> entries(section.sh_size / sizeof(T));
    HONE_RETURN_IF_ERROR(read(section.sh_offset, entries.data(), entries.size() * sizeof(T)));
    return entries;
  }
  template <typename T>
  Status replace(const Elf64_Shdr& section, const std::vector<T>& entries) {
    return write(section.sh_offset, entries.data(), entries.size() * sizeof(T));
  }
  Status finish() {
    HONE_RETURN_IF_ERROR(
        write(section_table_, sections_.data(), sections_.size() * sizeof(Elf64_Shdr)));
    if (std::fclose(file_.release()) == 0) return ok_status();
    return error(Code::kIo, "cannot write {}: {}", path_, errno_text(errno));
  }

 private:
  ObjectFile(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  Status read(uint64_t offset, void* data, size_t size) {
    if (read_at(file_.get(), offset, data, size)) return ok_status();
    return invalid("{} is not an object file: it is cut off", path_);
  }
  Status write(uint64_t offset, const void* data, size_t size) {
    if (write_at(file_.get(), offset, data, size)) return ok_status();
    return error(Code::kIo, "cannot write {}: {}", path_, errno_text(errno));
  }

  std::string path_;
  File file_;
  uint64_t bytes_ = 0;
  uint64_t section_table_ = 0;
  std::vector<Elf64_Shdr> sections_;
};

// A symbol table whose local symbols come first, and where each symbol was before.
struct Reordered {
  std::vector<Elf64_Sym> symbols;
  std::vector<uint32_t> new_index;  // per old index
  uint32_t num_local = 0;
};

Reordered locals_first(const std::vector<Elf64_Sym>& symbols) {
  Reordered result;
  result.new_index.resize(symbols.size());
  for (const bool local : {true, false}) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if ((ELF64_ST_BIND(symbols[i].st_info) == STB_LOCAL) != local) continue;
      result.new_index[i] = static_cast<uint32_t>(result.symbols.size());
      result.symbols.push_back(symbols[i]);
    }
    if (local) result.num_local = static_cast<uint32_t>(result.symbols.size());
  }
  return result;
}

// Makes the defined symbols local, but for `exports`; the names of all that are defined.
Result<std::set<std::string>> localize(std::vector<Elf64_Sym>& symbols,
                                       const std::vector<char>& names,
                                       const std::set<std::string>& exports) {
  if (names.empty() || names.back() != '\0') return invalid("an object has no table of names");
  std::set<std::string> defined;
  for (Elf64_Sym& symbol : symbols) {
    if (symbol.st_name >= names.size()) return invalid("a symbol's name is out of range");
    const std::string name = names.data() + symbol.st_name;
    const bool local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
    if (symbol.st_shndx == SHN_UNDEF || local) continue;
    defined.insert(name);
    if (exports.count(name) != 0) continue;
    symbol.st_info = ELF64_ST_INFO(STB_LOCAL, ELF64_ST_TYPE(symbol.st_info));
    symbol.st_other = STV_DEFAULT;
  }
  return defined;
}

// Everything that names symbols by their number.
Status renumber(ObjectFile& object, const std::vector<uint32_t>& new_index) {
  for (Elf64_Shdr& section : object.sections()) {
    if (section.sh_type == SHT_RELA) {
      HONE_ASSIGN_OR_RETURN(std::vector<Elf64_Rela> entries, object.contents<Elf64_Rela>(section));
      for (Elf64_Rela& entry : entries) {
        const uint64_t symbol = ELF64_R_SYM(entry.r_info);
        if (symbol >= new_index.size()) return invalid("a relocation's symbol is out of range");
        entry.r_info = ELF64_R_INFO(uint64_t{new_index[symbol]}, ELF64_R_TYPE(entry.r_info));
      }
      HONE_RETURN_IF_ERROR(object.replace(section, entries));
    } else if (section.sh_type == SHT_GROUP) {
      HONE_ASSIGN_OR_RETURN(std::vector<uint32_t> words, object.contents<uint32_t>(section));
      if (words.empty() || section.sh_info >= new_index.size())
        return invalid("a section group is damaged");
      words[0] &= ~uint32_t{GRP_COMDAT};
      section.sh_info = new_index[section.sh_info];
      HONE_RETURN_IF_ERROR(object.replace(section, words));
    } else if (section.sh_type == kAddressSignificance) {
      section.sh_type = SHT_NULL;
    } else if (section.sh_type == SHT_SYMTAB_SHNDX || section.sh_type == SHT_REL) {
      return error(Code::kUnsupported, "the linked object has a section of type {}",
                   section.sh_type);
    }
  }
  return ok_status();
}

// One member's header: 60 characters.
std::string member_header(const std::string& name, int64_t bytes) {
  return fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, 644, bytes);
}

// The member "/": how many symbols, where their members start (big-endian), and their names.
std::string archive_index(const std::vector<std::string>& symbols) {
  std::string names;
  for (const std::string& symbol : symbols) names += symbol + '\0';
  size_t bytes = 4 + 4 * symbols.size() + names.size();
  if (bytes % 2 != 0) {
    names += '\0';
    ++bytes;
  }
  const std::string header = member_header("/", static_cast<int64_t>(bytes));
  const size_t member = std::strlen(kArchiveMagic) + header.size() + bytes;
  std::string text = header;
  const auto add = [&](size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  };
  add(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) add(member);
  return text + names;
}

bool copy_bytes(FILE* from, FILE* to) {
  std::vector<char> buffer(1 << 20);
  while (true) {
    const size_t got = std::fread(buffer.data(), 1, buffer.size(), from);
    if (std::fwrite(buffer.data(), 1, got, to) != got || std::ferror(from) != 0) return false;
    if (got < buffer.size()) return true;
  }
}

}  // namespace

Status localize_symbols(const std::string& path, const std::vector<std::string>& exports,
                        const std::vector<std::string>& required) {
  HONE_ASSIGN_OR_RETURN(ObjectFile object, ObjectFile::open(path));
  std::vector<Elf64_Shdr>& sections = object.sections();
  const auto table = std::find_if(sections.begin(), sections.end(), [](const Elf64_Shdr& section) {
    return section.sh_type == SHT_SYMTAB;
  });
  if (table == sections.end() || table->sh_link >= sections.size())
    return invalid("{} has no symbols", path);
  HONE_ASSIGN_OR_RETURN(std::vector<Elf64_Sym> symbols, object.contents<Elf64_Sym>(*table));
  HONE_ASSIGN_OR_RETURN(const std::vector<char> names,
                        object.contents<char>(sections[table->sh_link]));
  HONE_ASSIGN_OR_RETURN(const std::set<std::string> defined,
                        localize(symbols, names, {exports.begin(), exports.end()}));
  for (const std::vector<std::string>* list : {&exports, &required}) {
    for (const std::string& name : *list)
      if (defined.count(name) == 0) return invalid("the model's code lacks the function {}", name);
  }
  const Reordered reordered = locals_first(symbols);
  HONE_RETURN_IF_ERROR(object.replace(*table, reordered.symbols));
  table->sh_info = reordered.num_local;
  HONE_RETURN_IF_ERROR(renumber(object, reordered.new_index));
  return object.finish();
}

Status write_archive(const std::string& object, const std::vector<std::string>& symbols,
                     const std::string& path) {
  const File from(std::fopen(object.c_str(), "rb"), std::fclose);
  if (from == nullptr) return error(Code::kIo, "cannot read {}: {}", object, errno_text(errno));
  std::fseek(from.get(), 0, SEEK_END);
  const int64_t bytes = std::ftell(from.get());
  std::rewind(from.get());
  if (bytes < 0 || bytes > kMaxMemberBytes)
    return error(Code::kUnsupported,
                 "a model of {} bytes is too large for a static library, "
                 "which holds {}: compile a shared one",
                 bytes, kMaxMemberBytes);
  File to(std::fopen(path.c_str(), "wb"), std::fclose);
  const std::string start =
      kArchiveMagic + archive_index(symbols) + member_header("model.o/", bytes);
  bool ok = to != nullptr && std::fwrite(start.data(), 1, start.size(), to.get()) == start.size() &&
            copy_bytes(from.get(), to.get());
  if (ok && bytes % 2 != 0) ok = std::fputc('\n', to.get()) != EOF;
  if (to == nullptr || std::fclose(to.release()) != 0 || !ok)
    return error(Code::kIo, "cannot write {}: {}", path, errno_text(errno));
  return ok_status();
}

}  // namespace hone::artifact
