// The reading half of elf_object.h.
#include <elf.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "hone/artifact/elf_object.h"
#include "hone/artifact/file_at.h"
#include "hone/base/file.h"
#include "hone/base/input_file.h"

namespace hone::artifact {
namespace {

constexpr uint64_t kMostNoteBytes = 1 << 20;

bool is_elf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB;
}

// The description of the first note of this owner in a note segment.
std::optional<std::string> find_note(std::string_view notes, std::string_view owner) {
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    const size_t name_end = sizeof note + padded(note.n_namesz);
    const size_t end = name_end + padded(note.n_descsz);
    if (end > notes.size()) return std::nullopt;
    // The name's size counts its zero.
    const bool same =
        note.n_namesz == owner.size() + 1 && notes.substr(sizeof note, owner.size()) == owner;
    if (same) return std::string(notes.substr(name_end, note.n_descsz));
    notes.remove_prefix(end);
  }
  return std::nullopt;
}

}  // namespace

Result<Machine> object_machine(std::string_view object) {
  Elf64_Ehdr header = {};
  if (object.size() >= sizeof header) std::memcpy(&header, object.data(), sizeof header);
  if (!is_elf64(header) || header.e_type != ET_REL)
    return invalid("found {} bytes that are not an object file of 64-bit ELF", object.size());
  const auto machine = static_cast<Machine>(header.e_machine);
  if (machine != Machine::kX86_64 && machine != Machine::kAArch64)
    return invalid("found an object file for machine {} of ELF, expected x86-64 or AArch64",
                   header.e_machine);
  return machine;
}

Result<std::optional<std::string>> read_shared_library_note(int descriptor, const std::string& path,
                                                            std::string_view owner) {
  Descriptor own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(::fdopen(own.get(), "rb"), std::fclose);
  if (file == nullptr) return error(Code::kIo, "cannot read {}: {}", path, errno_text(errno));
  (void)own.release();
  Elf64_Ehdr header = {};
  if (!read_at(file.get(), 0, &header, sizeof header) || !is_elf64(header) ||
      header.e_type != ET_DYN)
    return invalid("{} is not a shared library", path);
  if (header.e_machine != static_cast<uint16_t>(host_machine()))
    return invalid("{} is a shared library for another machine than {}", path,
                   machine_name(host_machine()));
  std::fseek(file.get(), 0, SEEK_END);
  const uint64_t file_bytes = static_cast<uint64_t>(std::ftell(file.get()));
  std::optional<std::string> found;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    const uint64_t place = header.e_phoff + static_cast<uint64_t>(i) * sizeof segment;
    if (!read_at(file.get(), place, &segment, sizeof segment))
      return invalid("{} is not a shared library: it is cut off", path);
    // The loader would map what is not there, and reading it would be a bus error.
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > file_bytes)
      return invalid("{} is a damaged shared library: it is cut off", path);
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!read_at(file.get(), segment.p_offset, notes.data(), notes.size()))
      return invalid("{} is not a shared library: it is cut off", path);
    if (!found) found = find_note(notes, owner);
  }
  return found;
}

}  // namespace hone::artifact
