#include "hone/backend/gpu/gpu_backend.h"

#include <algorithm>

#include "hone/backend/cpu/cpu_backend.h"
#include "hone/backend/device_code.h"
#include "hone/backend/executable_cache.h"
#include "hone/backend/gpu/code_notes.h"
#include "hone/backend/gpu/compile_apart.h"
#include "hone/backend/gpu/cubin.h"
#include "hone/backend/gpu/describe_kernel.h"
#include "hone/backend/gpu/loaded_program.h"
#include "hone/backend/gpu/print_c.h"
#include "hone/backend/gpu/residency.h"
#include "hone/base/clock.h"
#include "hone/base/hash.h"
#include "hone/ir/program_hash.h"
#include "hone/target/gpu_devices.h"

namespace hone::backend::gpu {
namespace {

constexpr int64_t kMaxBytes = 256 << 20;  // of code that is kept, of some thousand candidates

// All of a device that decides what code is made for it, or that there is none.
uint64_t code_key(const target::Gpu& gpu) {
  uint64_t key = hash_combine(hash_string(gpu.arch), static_cast<uint64_t>(gpu.api));
  for (const int64_t limit : {int64_t{gpu.threads_per_block}, gpu.shared_bytes_opt_in,
                              gpu.registers_per_sm, int64_t{gpu.capability}})
    key = hash_combine(key, static_cast<uint64_t>(limit));
  return key;
}

Status check_limits(const Kernel& kernel, const target::Gpu& gpu) {
  if (kernel.threads > gpu.threads_per_block)
    return error(Code::kUnsupported, "a block of {} threads, {} has {} at most", kernel.threads,
                 gpu.arch, gpu.threads_per_block);
  if (kernel.shared_bytes > gpu.shared_bytes_opt_in)
    return error(Code::kUnsupported, "{} bytes of shared memory, a block of {} has {} at most",
                 kernel.shared_bytes, gpu.arch, gpu.shared_bytes_opt_in);
  return ok_status();
}

Status check_registers(const Kernel& kernel, const KernelNote& note, const target::Gpu& gpu) {
  const int64_t all = int64_t{note.registers} * kernel.threads;
  if (gpu.registers_per_sm == 0 || all <= gpu.registers_per_sm) return ok_status();
  return error(Code::kUnsupported, "{} threads of {} registers, {} has {} registers",
               kernel.threads, note.registers, gpu.arch, gpu.registers_per_sm);
}

std::vector<ParamNote> param_notes(const ir::Program& program) {
  std::vector<ParamNote> notes;
  for (const ir::Param& param : program.params) {
    const bool written = param.role == ir::Role::kOutput || param.role == ir::Role::kWorkspace;
    notes.push_back({param.buffer->bytes(), written});
  }
  return notes;
}

PrintOptions print_options(const ir::Identity& identity) {
  PrintOptions options;
  options.symbol_prefix = fmt::format("hone_kernel_{}", hash_hex(identity.first));
  return options;
}

Dialect dialect_of(const target::Gpu& gpu) {
  return gpu.api == target::GpuApi::kCuda ? Dialect::kCuda : Dialect::kOpenCl;
}

// Compiles what the host runs: the phases that prepare constants.
Result<Executable> compile_packing(ir::Program program) {
  std::erase_if(program.phases, [](const ir::Phase& phase) { return !phase.prepare; });
  if (program.phases.empty()) return Executable{};
  return cpu::make_backend()->compile(program, target::host(), "");
}

PrintOptions print_options(const ir::Identity& identity, const std::vector<KernelNote>& kernels) {
  PrintOptions options = print_options(identity);
  for (const KernelNote& note : kernels) {
    if (note.blocks > 0) options.resident_blocks[note.symbol] = note.blocks;
  }
  return options;
}

const Kernel* find_kernel(const Source& source, const std::string& symbol) {
  const auto found = std::find_if(source.kernels.begin(), source.kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.symbol == symbol; });
  return found == source.kernels.end() ? nullptr : &*found;
}

// Returns whether no kernel has more on its stack than the same one of other code.
bool has_no_larger_stack(const Cubin& code, const Cubin& other) {
  return std::equal(code.kernels.begin(), code.kernels.end(), other.kernels.begin(),
                    other.kernels.end(), [](const KernelNote& a, const KernelNote& b) {
                      return a.symbol == b.symbol && a.stack_bytes <= b.stack_bytes;
                    });
}

// Compiles a source, and once more where a few registers less let an SM hold more blocks. What
// this makes counts if nothing moved from registers to the stack.
Result<Cubin> compile_for_residency(const ir::Program& program, const Source& source,
                                    PrintOptions options, const target::Gpu& gpu) {
  HONE_ASSIGN_OR_RETURN(Cubin cubin, compile_cuda_apart(source.text, gpu.arch));
  for (const KernelNote& note : cubin.kernels) {
    const Kernel* const kernel = find_kernel(source, note.symbol);
    const int blocks = kernel != nullptr ? blocks_to_ask_for(*kernel, note, gpu) : 0;
    if (blocks > 0) options.resident_blocks[note.symbol] = blocks;
  }
  if (options.resident_blocks.empty()) return cubin;
  HONE_ASSIGN_OR_RETURN(const Source bounded, print_c(program, Dialect::kCuda, options));
  Result<Cubin> made = compile_cuda_apart(bounded.text, gpu.arch);
  if (!made.ok() || !has_no_larger_stack(*made, cubin)) return cubin;
  for (KernelNote& note : made->kernels) {
    const auto blocks = options.resident_blocks.find(note.symbol);
    if (blocks != options.resident_blocks.end()) note.blocks = blocks->second;
  }
  return made;
}

class GpuBackend final : public Backend {
 public:
  [[nodiscard]] std::span<const ir::Pass> passes() const override { return ir::gpu_pipeline(); }

  [[nodiscard]] Result<Executable> compile(const ir::Program& program, const target::Target& target,
                                           std::string_view comment) const override {
    const ir::Identity identity = ir::identity(program);
    return made_.get({identity, code_key(target.gpu())},
                     [&] { return compile_now(program, target.gpu(), identity, comment); });
  }

  [[nodiscard]] Result<LoadedPtr> load(const Executable& executable) const override {
    return load_program(executable);
  }

  // The text of a loop is that of its kernel in C.
  [[nodiscard]] Result<Inspection> inspect(const ir::Program& program, const Executable& executable,
                                           const target::Target& target) const override {
    const std::string& code = executable.code.str();
    HONE_ASSIGN_OR_RETURN(const CodeNotes notes, read_notes(code));
    HONE_ASSIGN_OR_RETURN(const Source source,
                          print_c(program, dialect_of(target.gpu()),
                                  print_options(ir::identity(program), notes.kernels)));
    const runtime::CodeImage image = runtime::code_image(code.data(), 0);
    Inspection found;
    for (const Kernel& kernel : source.kernels) {
      found.loops.push_back(describe_kernel(kernel, source.text, notes, image));
      found.registers_needed =
          std::max(found.registers_needed, found.loops.back().vector_registers);
    }
    return found;
  }

 private:
  static Result<Executable> compile_now(const ir::Program& program, const target::Gpu& gpu,
                                        const ir::Identity& identity, std::string_view comment) {
    HONE_ASSIGN_OR_RETURN(Executable packing, compile_packing(program));
    const double start = thread_seconds();
    PrintOptions options = print_options(identity);
    if (gpu.api == target::GpuApi::kOpenCl) options.comment = comment;  // who has the code reads it
    HONE_ASSIGN_OR_RETURN(const Source source, print_c(program, dialect_of(gpu), options));
    for (const Kernel& kernel : source.kernels) HONE_RETURN_IF_ERROR(check_limits(kernel, gpu));
    const double printed = thread_seconds();
    CodeNotes notes = {.params = param_notes(program),
                       .kernels = {},
                       .device = target::driver_name(gpu),
                       .schedule = std::string(comment)};
    HONE_ASSIGN_OR_RETURN(const std::vector<DeviceCode> images,
                          make_images(program, source, options, gpu, notes));
    Executable made;
    if (!notes.kernels.empty()) {
      HONE_ASSIGN_OR_RETURN(made.figures, read_figures(images[0].data, notes.kernels));
    }
    made.kind = target::Kind::kGpu;
    made.code_bytes = std::ssize(images[0].data);
    made.code = with_notes(encode_device_code(images), notes);
    made.content =
        hash_combine(hash_combine(identity.first, identity.second), hash_string(gpu.arch));
    made.cost = packing.cost;
    made.cost.emit += printed - start;
    made.cost.generate += thread_seconds() - printed;
    made.prepare_code = std::move(packing.code);
    made.scratch_bytes = packing.scratch_bytes;
    made.entries = entries(program, source.kernels, std::move(packing.entries));
    return made;
  }

  // The code for the device. Newer architectures run PTX, but for that of one architecture alone.
  static Result<std::vector<DeviceCode>> make_images(const ir::Program& program,
                                                     const Source& source,
                                                     const PrintOptions& options,
                                                     const target::Gpu& gpu, CodeNotes& notes) {
    DeviceCode image;
    if (gpu.api == target::GpuApi::kOpenCl) {
      image.options = "-cl-std=CL1.2";
      image.data = source.text;
      return std::vector<DeviceCode>{std::move(image)};
    }
    HONE_ASSIGN_OR_RETURN(Cubin cubin, compile_for_residency(program, source, options, gpu));
    for (KernelNote& note : cubin.kernels) {
      const Kernel* const kernel = find_kernel(source, note.symbol);
      if (kernel == nullptr) continue;
      HONE_RETURN_IF_ERROR(check_registers(*kernel, note, gpu));
      note.shared_bytes = kernel->shared_bytes;
    }
    notes.kernels = std::move(cubin.kernels);
    image.format = runtime::CodeFormat::kCubin;
    image.capability = gpu.capability;
    image.specific = gpu.arch.ends_with('a');
    image.data = std::move(cubin.data);
    std::vector<DeviceCode> images = {std::move(image)};
    if (images[0].specific || cubin.ptx.empty()) return images;
    images.push_back({.format = runtime::CodeFormat::kPtx,
                      .capability = gpu.capability,
                      .data = std::move(cubin.ptx)});
    return images;
  }

  // The entry points in the order of the phases.
  static std::vector<EntryPoint> entries(const ir::Program& program,
                                         const std::vector<Kernel>& kernels,
                                         std::vector<EntryPoint> packing) {
    std::vector<EntryPoint> all;
    auto next_run = kernels.begin();
    auto next_packing = packing.begin();
    for (const ir::Phase& phase : program.phases) {
      if (phase.prepare) {
        all.push_back(std::move(*next_packing++));
        continue;
      }
      const Kernel& kernel = *next_run++;
      all.push_back({.symbol = kernel.symbol,
                     .num_tiles = kernel.tiles,
                     .threads = kernel.threads,
                     .shared_bytes = kernel.dynamic_bytes});
    }
    return all;
  }

  mutable ExecutableCache made_{kMaxBytes};
};

}  // namespace

std::shared_ptr<const Backend> make_backend() { return std::make_shared<const GpuBackend>(); }

}  // namespace hone::backend::gpu
