#include "hone/backend/gpu/code_notes.h"

#include <fmt/format.h>

#include <cstring>
#include <sstream>

#include "hone/runtime/device/code.h"

namespace hone::backend::gpu {

std::string with_notes(std::string container, const CodeNotes& notes) {
  for (const ParamNote& p : notes.params)
    container += fmt::format("param {} {}\n", p.bytes, p.written ? 1 : 0);
  for (const KernelNote& k : notes.kernels) {
    container += fmt::format("kernel {} {} {} {} {} {}\n", k.symbol, k.registers, k.stack_bytes,
                             k.spill_bytes, k.shared_bytes, k.blocks);
  }
  if (!notes.device.empty()) container += fmt::format("device {}\n", notes.device);
  std::istringstream schedule(notes.schedule);
  for (std::string line; std::getline(schedule, line);)
    container += fmt::format("schedule {}\n", line);
  return container;
}

Result<CodeNotes> read_notes(std::string_view code) {
  // The container is read in place, where it has to be aligned.
  const std::string aligned(code);
  if (const char* problem = runtime::code_check(aligned.data(), aligned.size()); problem != nullptr)
    return Status(Code::kInvalid, problem);
  runtime::CodeHeader header;
  std::memcpy(&header, aligned.data(), sizeof header);
  std::istringstream lines(aligned.substr(header.total_bytes));
  CodeNotes notes;
  for (std::string word; lines >> word;) {
    bool read = false;
    if (word == "param") {
      ParamNote& p = notes.params.emplace_back();
      read = static_cast<bool>(lines >> p.bytes >> p.written) && p.bytes >= 0;
    } else if (word == "kernel") {
      KernelNote& k = notes.kernels.emplace_back();
      read = static_cast<bool>(lines >> k.symbol >> k.registers >> k.stack_bytes >> k.spill_bytes >>
                               k.shared_bytes >> k.blocks);
    } else if (word == "device") {
      read = static_cast<bool>(std::getline(lines.ignore(), notes.device));
    } else if (word == "schedule") {
      std::string line;
      read = static_cast<bool>(std::getline(lines.ignore(), line));
      notes.schedule += line + "\n";
    }
    if (!read) return invalid("the notes of a kernel's code are not valid");
  }
  return notes;
}

}  // namespace hone::backend::gpu
