#include "hone/backend/loading/loaded_object.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "hone/backend/loading/c_functions.h"
#include "hone/backend/loading/relocate.h"
#include "hone/base/round_up.h"

namespace hone::backend {
namespace {

constexpr uint64_t kMostAlignment = 4096;

Status cut_off() { return invalid("object: it is cut off"); }

// A file and where its parts are. All reads are within it.
class Object {
 public:
  [[nodiscard]] static Result<Object> open(std::string_view bytes) {
    Object object;
    object.bytes_ = bytes;
    Elf64_Ehdr header;
    if (!object.read(0, header)) return cut_off();
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_REL ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      return invalid("object: it is no relocatable file of ELF");
    if (header.e_machine != kOwnMachine) return invalid("object: it is for another machine");
    HONE_ASSIGN_OR_RETURN(object.sections, object.list<Elf64_Shdr>(header.e_shoff, header.e_shnum));
    if (header.e_shstrndx >= object.sections.size()) return cut_off();
    object.names_ = object.sections[header.e_shstrndx];
    for (const Elf64_Shdr& section : object.sections) {
      if (section.sh_type != SHT_SYMTAB) continue;
      HONE_ASSIGN_OR_RETURN(
          object.symbols,
          object.list<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym)));
      if (section.sh_link >= object.sections.size()) return cut_off();
      object.symbol_names_ = object.sections[section.sh_link];
    }
    return object;
  }

  template <typename T>
  [[nodiscard]] Result<std::vector<T>> list(uint64_t offset, uint64_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) return cut_off();
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + offset, count * sizeof(T));
    return values;
  }
  [[nodiscard]] Result<std::string_view> contents(const Elf64_Shdr& section) const {
    if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
      return cut_off();
    return bytes_.substr(section.sh_offset, section.sh_size);
  }
  [[nodiscard]] std::string name(const Elf64_Shdr& section) const {
    return text(names_, section.sh_name);
  }
  [[nodiscard]] std::string name(const Elf64_Sym& symbol) const {
    return text(symbol_names_, symbol.st_name);
  }

  std::vector<Elf64_Shdr> sections;
  std::vector<Elf64_Sym> symbols;

 private:
  template <typename T>
  bool read(uint64_t offset, T& value) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return true;
  }
  [[nodiscard]] std::string text(const Elf64_Shdr& table, uint64_t offset) const {
    const Result<std::string_view> texts = contents(table);
    if (!texts.ok() || offset >= texts->size()) return "";
    const std::string_view rest = texts->substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }
  std::string_view bytes_;
  Elf64_Shdr names_ = {}, symbol_names_ = {};
};

// Where sections are in memory: code, then the jumps to functions outside, then on pages of their
// own data and the pointers to symbols.
struct Plan {
  static constexpr int64_t kNone = -1;
  std::vector<int64_t> offsets;  // per section; kNone if it is not in memory
  int64_t jumps = 0, data = 0, slots = 0, bytes = 0;
  bool is_written = false;  // code may change its data
};

Result<Plan> plan_of(const Object& object) {
  Plan plan;
  plan.offsets.assign(object.sections.size(), Plan::kNone);
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const auto symbols = std::ssize(object.symbols);
  int64_t end = 0;
  for (const bool code : {true, false}) {
    for (size_t i = 0; i < object.sections.size(); ++i) {
      const Elf64_Shdr& section = object.sections[i];
      const std::string name = object.name(section);
      // Nobody unwinds the stack of a kernel.
      if ((section.sh_flags & SHF_ALLOC) == 0 || name == ".eh_frame") continue;
      if (((section.sh_flags & SHF_EXECINSTR) != 0) != code) continue;
      constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // so that every address is near
      if (section.sh_addralign > kMostAlignment || section.sh_size > kMostBytes)
        return invalid("object: section {} is too large", name);
      end = round_up(end, std::max<int64_t>(1, static_cast<int64_t>(section.sh_addralign)));
      plan.offsets[i] = end;
      end += static_cast<int64_t>(section.sh_size);
      if (static_cast<uint64_t>(end) > kMostBytes) return invalid("object: it is too large");
      plan.is_written |= (section.sh_flags & SHF_WRITE) != 0 && !name.starts_with(".data.rel.ro");
    }
    if (code) {
      plan.jumps = round_up(end, 16);
      end = plan.data = round_up(plan.jumps + kJumpBytes * symbols, page);
    }
  }
  plan.slots = round_up(end, 8);
  plan.bytes = round_up(plan.slots + 8 * symbols, page);
  return plan;
}

// Links an object in memory that is writable yet.
class Linking {
 public:
  Linking(const Object& object, const Plan& plan, char* image)
      : object_(object), plan_(plan), image_(image) {}

  [[nodiscard]] Status run() {
    HONE_RETURN_IF_ERROR(copy_sections());
    HONE_RETURN_IF_ERROR(find_symbols());
    for (const Elf64_Shdr& section : object_.sections) {
      if (section.sh_type == SHT_REL) return invalid("object: relocations without addends");
      if (section.sh_type != SHT_RELA || section.sh_info >= object_.sections.size() ||
          plan_.offsets[section.sh_info] == Plan::kNone)
        continue;
      HONE_RETURN_IF_ERROR(relocate_section(section));
    }
    return ok_status();
  }
  [[nodiscard]] std::map<std::string, void*> functions() const {
    std::map<std::string, void*> found;
    for (size_t i = 0; i < object_.symbols.size(); ++i) {
      const Elf64_Sym& symbol = object_.symbols[i];
      if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx != SHN_UNDEF)
        found[object_.name(symbol)] = reinterpret_cast<void*>(addresses_[i]);
    }
    return found;
  }

 private:
  [[nodiscard]] uint64_t address(int64_t offset) const {
    return reinterpret_cast<uint64_t>(image_ + offset);
  }
  [[nodiscard]] uint64_t jump(size_t symbol) const {
    return address(plan_.jumps + kJumpBytes * static_cast<int64_t>(symbol));
  }
  [[nodiscard]] uint64_t slot(size_t symbol) const {
    return address(plan_.slots + 8 * static_cast<int64_t>(symbol));
  }

  [[nodiscard]] Status copy_sections() {
    for (size_t i = 0; i < object_.sections.size(); ++i) {
      const Elf64_Shdr& section = object_.sections[i];
      if (plan_.offsets[i] == Plan::kNone || section.sh_type == SHT_NOBITS) continue;
      HONE_ASSIGN_OR_RETURN(const std::string_view contents, object_.contents(section));
      std::copy(contents.begin(), contents.end(), image_ + plan_.offsets[i]);
    }
    return ok_status();
  }

  [[nodiscard]] Status find_symbols() {
    addresses_.assign(object_.symbols.size(), 0);
    for (size_t i = 0; i < object_.symbols.size(); ++i) {
      const Elf64_Sym& symbol = object_.symbols[i];
      const std::string name = object_.name(symbol);
      if (symbol.st_shndx == SHN_UNDEF) {
        if (name.empty() || name == "_GLOBAL_OFFSET_TABLE_") continue;
        void* const function = find_c_function(name);
        if (function == nullptr) return invalid("object: symbol {} is not in this process", name);
        addresses_[i] = reinterpret_cast<uint64_t>(function);
        write_jump(reinterpret_cast<char*>(jump(i)), addresses_[i]);
      } else if (symbol.st_shndx == SHN_ABS) {
        addresses_[i] = symbol.st_value;
      } else if (symbol.st_shndx < object_.sections.size()) {
        const int64_t offset = plan_.offsets[symbol.st_shndx];
        if (offset == Plan::kNone) continue;  // of what is not in memory
        if (symbol.st_value > object_.sections[symbol.st_shndx].sh_size)
          return invalid("object: symbol {} is beyond its section", name);
        addresses_[i] = address(offset) + symbol.st_value;
      } else {
        return invalid("object: symbol {} is in no section", name);
      }
      std::memcpy(reinterpret_cast<char*>(slot(i)), &addresses_[i], sizeof(uint64_t));
    }
    return ok_status();
  }

  [[nodiscard]] Status relocate_section(const Elf64_Shdr& section) {
    HONE_ASSIGN_OR_RETURN(
        const std::vector<Elf64_Rela> relocations,
        object_.list<Elf64_Rela>(section.sh_offset, section.sh_size / sizeof(Elf64_Rela)));
    const uint64_t size = object_.sections[section.sh_info].sh_size;
    for (const Elf64_Rela& relocation : relocations) {
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
      const size_t symbol = ELF64_R_SYM(relocation.r_info);
      const auto changed = static_cast<uint64_t>(relocated_bytes(type));
      if (symbol >= addresses_.size() || relocation.r_offset > size ||
          changed > size - relocation.r_offset)
        return cut_off();
      const bool outside = object_.symbols[symbol].st_shndx == SHN_UNDEF;
      if (outside && addresses_[symbol] == 0)
        return invalid("object: a relocation to a symbol that is nowhere");
      HONE_RETURN_IF_ERROR(
          relocate({.type = type,
                    .place = image_ + plan_.offsets[section.sh_info] + relocation.r_offset,
                    .target = addresses_[symbol],
                    .jump = outside ? jump(symbol) : addresses_[symbol],
                    .slot = slot(symbol),
                    .addend = relocation.r_addend}));
    }
    return ok_status();
  }

  const Object& object_;
  const Plan& plan_;
  char* const image_;
  std::vector<uint64_t> addresses_;  // per symbol
};

Status protect(char* image, const Plan& plan) {
  const auto code = static_cast<size_t>(plan.data), all = static_cast<size_t>(plan.bytes);
  __builtin___clear_cache(image, image + code);
  if (mprotect(image, code, PROT_READ | PROT_EXEC) != 0 ||
      (!plan.is_written && mprotect(image + code, all - code, PROT_READ) != 0))
    return error(Code::kIo, "memory for code: {}", std::strerror(errno));
  return ok_status();
}

}  // namespace

LoadedObject::~LoadedObject() { munmap(image_, bytes_); }

void* LoadedObject::symbol(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : found->second;
}

Result<std::unique_ptr<LoadedObject>> LoadedObject::load(std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(const Object object, Object::open(bytes));
  HONE_ASSIGN_OR_RETURN(const Plan plan, plan_of(object));
  const auto size = static_cast<size_t>(plan.bytes);
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return error(Code::kIo, "memory for code: {}", std::strerror(errno));
  std::unique_ptr<LoadedObject> loaded(new LoadedObject(static_cast<char*>(memory), size, {}));
  Linking linking(object, plan, loaded->image_);
  HONE_RETURN_IF_ERROR(linking.run());
  loaded->symbols_ = linking.functions();
  HONE_RETURN_IF_ERROR(protect(loaded->image_, plan));
  return loaded;
}

}  // namespace hone::backend
