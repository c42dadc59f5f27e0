#include "hone/artifact/image_object.h"

#include <elf.h>

#include <algorithm>

#include "hone/artifact/interface_names.h"
#include "hone/artifact/weights_segment.h"
#include "hone/runtime/hone_model.h"

namespace hone::artifact {
namespace {

constexpr const char* kNoteOwner = "Hone";  // model.cc looks for it
// The linker holds one input section at a time in memory.
constexpr int64_t kWeightChunk = 16 << 20;
constexpr int64_t kWeightAlignment = 4096;

// The note that tells an artifact from any other shared library: "<abi version> <prefix>".
std::string note_bytes(const std::string& prefix) {
  const std::string owner = std::string(kNoteOwner) + '\0';
  const std::string text = fmt::format("{} {}", HONE_ABI_VERSION, prefix);
  Elf64_Nhdr header = {};
  header.n_namesz = static_cast<uint32_t>(owner.size());
  header.n_descsz = static_cast<uint32_t>(text.size());
  header.n_type = 1;
  const auto padded = [](std::string bytes) {
    bytes.resize((bytes.size() + 3) / 4 * 4);
    return bytes;
  };
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + padded(owner) +
         padded(text);
}

// Cuts the weights, with the zeros between them, into sections of kWeightChunk.
std::vector<ElfSection> weight_sections(const ArtifactSpec& spec, bool far) {
  static const char zeros[runtime::kBufferAlignment] = {};
  ElfSection empty;
  // x86-64's name for data that may lie out of reach of the code.
  empty.name = far ? ".lrodata" : ".hone_weights";
  empty.alignment = kWeightAlignment;
  std::vector<ElfSection> sections = {empty};
  int64_t used = 0;
  const auto append = [&](const char* data, int64_t size) {
    while (size > 0) {
      if (used == kWeightChunk) {
        sections.push_back(empty);
        used = 0;
      }
      const int64_t now = std::min(size, kWeightChunk - used);
      sections.back().contents.push_back({data, now});
      data += now;
      size -= now;
      used += now;
    }
  };
  for (const ArtifactWeight& weight : spec.weights) {
    append(static_cast<const char*>(weight.data), weight.bytes);
    const int64_t rest = weight.bytes % runtime::kBufferAlignment;
    if (rest != 0) append(zeros, runtime::kBufferAlignment - rest);
  }
  return sections;
}

void add_weights(const ArtifactSpec& spec, const ImageOptions& options, ElfObject& object) {
  const bool far =
      options.machine == Machine::kX86_64 && weight_offsets(spec).back() > options.near_weights;
  for (ElfSection& section : weight_sections(spec, far))
    object.sections.push_back(std::move(section));
  // GNU ld puts far data into the writable segment before it, unless that ends in zeros.
  if (far) object.sections.push_back({".bss", ElfSection::kZeroed, 8, {}, {}, 8});
}

}  // namespace

Status write_image_object(const ArtifactSpec& spec, const std::string& plan,
                          const ImageOptions& options, const std::string& path) {
  const std::string note = note_bytes(spec.prefix);
  const size_t num_kernels = spec.kernel_symbols.size();
  const std::string pointers((num_kernels + 2) * 8, '\0');
  const std::vector<KernelPlace> places = kernel_places(spec);
  const std::string branch = branch_instruction(options.machine);
  ElfObject object;
  object.machine = options.machine;
  enum { kPlan, kTable, kBranches, kNote, kWeights };
  object.sections.push_back(
      {".rodata", ElfSection::kReadOnly, 64, {{plan.data(), std::ssize(plan)}}, {}});
  object.sections.push_back({".data.rel.ro",
                             ElfSection::kRelocatedData,
                             8,
                             {{pointers.data(), std::ssize(pointers)}},
                             {}});
  object.sections.push_back({".text", ElfSection::kCode, 16, {}, {}});
  object.sections.push_back({".note.hone", ElfSection::kNote, 4, {}, {}});
  if (options.shared)
    object.sections.back().contents = {{note.data(), std::ssize(note)}};
  else
    add_weights(spec, options, object);

  const auto add_symbol = [&](ElfSymbol symbol) {
    object.symbols.push_back(std::move(symbol));
    return static_cast<int>(object.symbols.size()) - 1;
  };
  add_symbol({"hone_artifact_plan", kPlan, 0, std::ssize(plan), false, true});
  const int64_t table_bytes = static_cast<int64_t>(num_kernels) * 8;
  add_symbol({"hone_artifact_kernels", kTable, 0, table_bytes, false, true});
  add_symbol({"hone_artifact_weights", kTable, table_bytes, 8, false, true});
  add_symbol({"hone_artifact_devices", kTable, table_bytes + 8, 8, false, true});
  const int weights =
      add_symbol({kWeightsSymbol, options.shared ? -1 : kWeights, 0, 0, false, true});
  ElfSection& table = object.sections[kTable];
  for (size_t i = 0; i < num_kernels; ++i) {
    if (places[i].entry != nullptr) continue;
    const int kernel = add_symbol({spec.kernel_symbols[i]});
    table.relocations.push_back({ElfRelocation::kPointer, static_cast<int64_t>(i) * 8, kernel, 0});
  }
  table.relocations.push_back({ElfRelocation::kPointer, table_bytes, weights, 0});
  // It draws the part that runs devices from the runtime's library; else the pointer is null.
  if (spec.device != runtime::DeviceKind::kNone)
    table.relocations.push_back(
        {ElfRelocation::kPointer, table_bytes + 8, add_symbol({"hone_device_runner"}), 0});
  ElfSection& code = object.sections[kBranches];
  int64_t place = 0;
  for (const std::string& function : interface_functions()) {
    const int target = add_symbol({function});  // also draws it from the runtime's library
    const std::string name = exported_name(function, spec.prefix);
    if (name == function) continue;
    code.contents.push_back({branch.data(), std::ssize(branch)});
    code.relocations.push_back({ElfRelocation::kBranch, place, target, 0});
    add_symbol({name, kBranches, place, std::ssize(branch), true, false});
    place += std::ssize(branch);
  }
  return write_elf_object(object, path);
}

}  // namespace hone::artifact
