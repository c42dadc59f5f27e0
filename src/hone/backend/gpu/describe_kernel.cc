#include "hone/backend/gpu/describe_kernel.h"

#include <fmt/format.h>

#include <sstream>

#include "hone/backend/gpu/cubin.h"

namespace hone::backend::gpu {
namespace {

// Returns the lines of a kernel in the source of its program.
std::vector<std::string> lines_of(const std::string& source, const std::string& symbol) {
  const size_t name = source.find("\n" + symbol + "(");
  if (name == std::string::npos) return {};
  const size_t begin = source.rfind("\n\n", name) + 2;
  const size_t end = source.find("\n}\n", name) + 2;
  std::vector<std::string> lines;
  std::istringstream text(source.substr(begin, end - begin));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void add_counts(const CubinInstructions& code, InnerLoop& out) {
  out.bytes = code.bytes;
  out.spills = code.local;
  out.mix.all = code.all;
  out.mix.fma = code.fma + code.matrix;
  out.mix.arithmetic = code.arithmetic;
  out.mix.load = code.global_load + code.shared_load + code.async_copy;
  out.mix.store = code.global_store + code.shared_store;
  out.mix.scalar =
      code.all - out.mix.fma - out.mix.arithmetic - out.mix.load - out.mix.store - code.local;
}

}  // namespace

InnerLoop describe_kernel(const Kernel& kernel, const std::string& source, const CodeNotes& notes,
                          const runtime::CodeImage& image) {
  InnerLoop out;
  out.symbol = kernel.symbol;
  std::istringstream schedule(notes.schedule);
  for (std::string line; std::getline(schedule, line);) out.text.push_back("// " + line);
  for (const KernelNote& note : notes.kernels) {
    if (note.symbol != kernel.symbol) continue;
    out.vector_registers = note.registers;
    out.vector_bits = 32;
    out.text.push_back(
        fmt::format("// {} registers a thread, {} bytes of them spilled; {} bytes of arrays in "
                    "local memory; {} bytes of shared memory",
                    note.registers, note.spill_bytes, note.stack_bytes, kernel.shared_bytes));
  }
  if (image.format == runtime::CodeFormat::kCubin) {
    const std::string_view cubin(static_cast<const char*>(image.data),
                                 static_cast<size_t>(image.bytes));
    if (const Result<CubinInstructions> code = count_instructions(cubin, kernel.symbol);
        code.ok()) {
      add_counts(*code, out);
      out.text.push_back(fmt::format(
          "// {} instructions: {} multiply-adds, {} of matrices; {} loads and {} stores of global, "
          "{} and {} of shared memory, {} of local memory; {} barriers",
          code->all, code->fma, code->matrix, code->global_load, code->global_store,
          code->shared_load, code->shared_store, code->local, code->barrier));
    }
  }
  for (std::string& line : lines_of(source, kernel.symbol)) out.text.push_back(std::move(line));
  return out;
}

}  // namespace hone::backend::gpu
