#include "hone/artifact/weights_segment.h"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "hone/artifact/file_at.h"
#include "hone/base/file.h"
#include "hone/base/round_up.h"
#include "hone/runtime/plan.h"

namespace hone::artifact {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

constexpr const char* kSection = ".hone_weights";
// A note whose program header becomes that of the weights: linkers leave no header unused. Its
// alignment differs from those of other notes, so that linkers give it a header of its own.
constexpr const char* kSpareNote = ".note.hone.spare";
constexpr int64_t kSpareAlignment = 16;

// A segment has at least one byte.
int64_t segment_bytes(const ArtifactSpec& spec) {
  return std::max(weight_offsets(spec).back(), runtime::kBufferAlignment);
}

// The largest size of a page that the loader may use.
int64_t page_bytes(Machine machine) { return machine == Machine::kAArch64 ? 65536 : 4096; }

// The headers of a linked library.
struct Library {
  Elf64_Ehdr file = {};
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections;
  std::string names;  // of the sections

  [[nodiscard]] bool read(FILE* in) {
    if (!read_at(in, 0, &file, sizeof file)) return false;
    segments.resize(file.e_phnum);
    sections.resize(file.e_shnum);
    if (!read_at(in, file.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)) ||
        !read_at(in, file.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr)) ||
        file.e_shstrndx >= sections.size())
      return false;
    names.resize(sections[file.e_shstrndx].sh_size);
    return read_at(in, sections[file.e_shstrndx].sh_offset, names.data(), names.size());
  }
  [[nodiscard]] bool write(FILE* out) const {
    return write_at(out, file.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)) &&
           write_at(out, file.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  }
  [[nodiscard]] Elf64_Shdr* find(std::string_view name) {
    for (Elf64_Shdr& section : sections) {
      if (section.sh_name < names.size() && name == names.c_str() + section.sh_name)
        return &section;
    }
    return nullptr;
  }
};

// Makes the reserved addresses a segment that starts at `offset` of the file. Returns what is
// wrong with the linker's output, if anything.
std::optional<std::string> place_segment(Library& library, uint64_t offset) {
  Elf64_Shdr* const weights = library.find(kSection);
  const Elf64_Shdr* const note = library.find(kSpareNote);
  if (weights == nullptr || weights->sh_type != SHT_NOBITS || note == nullptr)
    return "the addresses of the weights are not reserved";
  const uint64_t begin = weights->sh_addr, end = begin + weights->sh_size;
  const uint64_t page = weights->sh_addralign;
  auto& segments = library.segments;
  auto spare = segments.end(), last = segments.end();
  for (auto at = segments.begin(); at != segments.end(); ++at) {
    Elf64_Phdr& segment = *at;
    if (segment.p_type == PT_NOTE && segment.p_vaddr == note->sh_addr &&
        segment.p_filesz == note->sh_size)
      spare = at;
    if (segment.p_type != PT_LOAD) continue;
    last = at;
    const uint64_t segment_end = segment.p_vaddr + segment.p_memsz;
    if (segment_end <= begin) continue;
    // This is the writable segment, which ends in what is zero at the start.
    if (segment_end > round_up(end, page) || segment.p_vaddr + segment.p_filesz > begin)
      return "other data follows the addresses of the weights";
    segment.p_memsz = segment.p_vaddr < begin ? begin - segment.p_vaddr : 0;
    if (segment.p_memsz == 0) return "the addresses of the weights are a segment already";
  }
  if (spare == segments.end()) return "there is no program header for the weights";
  *spare = {.p_type = PT_LOAD,
            .p_flags = PF_R,
            .p_offset = offset,
            .p_vaddr = begin,
            .p_paddr = begin,
            .p_filesz = weights->sh_size,
            .p_memsz = weights->sh_size,
            .p_align = page};
  // Loaders expect segments in the order of their addresses.
  if (last != segments.end() && spare < last) std::rotate(spare, spare + 1, last + 1);
  weights->sh_type = SHT_PROGBITS;
  weights->sh_flags = SHF_ALLOC;
  weights->sh_offset = offset;
  return std::nullopt;
}

bool write_weights(const ArtifactSpec& spec, uint64_t offset, FILE* out) {
  static const char zeros[runtime::kBufferAlignment] = {};
  if (!seek_to(out, offset)) return false;
  if (weight_offsets(spec).back() == 0)
    return std::fwrite(zeros, 1, sizeof zeros, out) == sizeof zeros;
  for (const ArtifactWeight& weight : spec.weights) {
    const auto bytes = static_cast<size_t>(weight.bytes);
    const size_t padding = round_up(bytes, sizeof zeros) - bytes;
    if (std::fwrite(weight.data, 1, bytes, out) != bytes ||
        std::fwrite(zeros, 1, padding, out) != padding)
      return false;
  }
  return true;
}

}  // namespace

Status write_weights_object(const ArtifactSpec& spec, Machine machine, const std::string& path) {
  static const Elf64_Nhdr empty_note = {};
  ElfObject object;
  object.machine = machine;
  object.sections.push_back(
      {kSpareNote, ElfSection::kNote, kSpareAlignment, {{&empty_note, sizeof empty_note}}, {}});
  object.sections.push_back(
      {kSection, ElfSection::kZeroed, page_bytes(machine), {}, {}, segment_bytes(spec)});
  object.symbols.push_back({kWeightsSymbol, 1, 0, 0, false, true});
  return write_elf_object(object, path);
}

Status append_weights(const ArtifactSpec& spec, const std::string& path) {
  File file(std::fopen(path.c_str(), "r+b"), std::fclose);
  if (file == nullptr) return error(Code::kIo, "cannot read {}: {}", path, errno_text(errno));
  Library library;
  if (!library.read(file.get()) || std::fseek(file.get(), 0, SEEK_END) != 0)
    return error(Code::kIo, "cannot read {}: it is cut off", path);
  const auto page = static_cast<uint64_t>(page_bytes(static_cast<Machine>(library.file.e_machine)));
  const uint64_t offset = round_up(static_cast<uint64_t>(std::ftell(file.get())), page);
  if (const std::optional<std::string> wrong = place_segment(library, offset))
    return error(Code::kInternal, "cannot add the weights to what the linker wrote: {}", *wrong);
  const bool written = library.write(file.get()) && write_weights(spec, offset, file.get());
  const int failure = errno;
  const bool closed = std::fclose(file.release()) == 0;
  if (written && closed) return ok_status();
  return error(Code::kIo, "cannot write {}: {}", path, errno_text(written ? errno : failure));
}

}  // namespace hone::artifact
