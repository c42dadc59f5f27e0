// backend/gpu/code_notes.h - the notes that the back end of GPUs puts behind the container of a
// kernel's code (backend/device_code.h): the sizes of params and the device, so that a kernel can
// be run on arguments in host memory, what the compiler said of the kernels, and the schedule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::backend::gpu {

struct ParamNote {
  int64_t bytes = 0;
  bool written = false;  // phases that run with the model write it
};

// The resources that a compiled kernel of CUDA takes, as its binary says (cubin.h).
struct KernelNote {
  std::string symbol;
  int registers = 0;        // registers of a thread, of 32 bits
  int64_t stack_bytes = 0;  // arrays and spilled registers of a thread
  // The bytes that instructions of a thread write to known places of the stack, which are registers
  // that ran out; 0 if places are computed, too, as arrays then lie there.
  int64_t spill_bytes = 0;
  int64_t shared_bytes = 0;  // shared memory of a block
  int blocks = 0;            // for which registers were saved (residency.h), or 0
};

struct CodeNotes {
  std::vector<ParamNote> params;
  std::vector<KernelNote> kernels;  // empty if nothing is known
  std::string device = {};  // text in the name of the device or its platform; empty: the first one
  std::string schedule = {};  // lines for people
};

[[nodiscard]] std::string with_notes(std::string container, const CodeNotes& notes);
// Reads the notes of code that may come from another process.
[[nodiscard]] Result<CodeNotes> read_notes(std::string_view code);

}  // namespace hone::backend::gpu
