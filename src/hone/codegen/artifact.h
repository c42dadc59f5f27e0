// codegen/artifact.h - writes a compiled model as one shared or static library with a C interface
// (runtime/hone_model.h), and the C header for it.
//
// The file depends on libc and libm only; Hone carries the runtime that is linked in, and needs a
// linker (`ld` or `ld.lld`) on the machine. A static library has no global symbols but the
// interface: any number of them with different prefixes go into one program. Equal specs give equal
// bytes. The output appears at once or not at all: it is made in a temporary folder beside its
// target, then published as base/output_file.h says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hone/base/status.h"
#include "hone/codegen/runtime/plan.h"
#include "hone/tensor/dtype.h"

namespace hone::codegen {

using runtime::ArgumentKind;

struct ArtifactTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t actual_shape = -1;  // outputs: arena offset of the int64 dims that a step writes, or -1
};

struct ArtifactArgument {
  ArgumentKind kind = ArgumentKind::kArena;
  int index = 0;       // of the input, output or weight; 0 for the arena
  int64_t offset = 0;  // bytes from the start of the input, output, weight or arena
};

struct ArtifactStep {
  std::string name;
  int kernel = 0;  // index into ArtifactSpec::kernel_symbols; several steps may share one
  int64_t num_tiles = 1;
  int max_threads = 0;  // 0 = all
  double flops = 0;
  std::vector<ArtifactArgument> arguments;
  std::string kernel_class;  // for tables: "conv2d+bias+relu"
  double bytes = 0;          // read and written, each once
  double least_flops = 0;    // of the algorithm that needs the least
  bool joins = false;        // runs together with the step before
  int units = 0;             // of steps that run together: its part of their work; else 0
};

struct ArtifactWeight {
  const void* data = nullptr;  // must live until the file is written
  int64_t bytes = 0;
};

struct ArtifactSpec {
  std::string name;                   // of the model, for the header's comment
  std::string prefix = "hone_model";  // of all exported symbols; a C identifier
  std::vector<ArtifactTensor> inputs;
  std::vector<ArtifactTensor> outputs;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes = 0;                        // of each thread
  std::vector<std::pair<int64_t, int64_t>> zeroed;  // (offset, bytes) of the arena, zero at create
  std::vector<ArtifactStep> steps;                  // in the order of execution
  std::vector<ArtifactWeight> weights;              // each starts on a 64-byte boundary
  std::vector<std::string> objects;                 // relocatable ELF files that define the kernels
  std::vector<std::string> kernel_symbols;
  std::vector<std::string> features;  // CPU features that the kernels need, by LLVM's names
};

struct ArtifactOptions {
  std::string linker;  // a program; empty: the first of ld, ld.lld, ld.lld-22 in PATH
  // Weights of more bytes are kept out of the way of x86-64's code, which reaches 2 GiB.
  int64_t near_weights = int64_t{1} << 30;
  // Called with the finished file before it takes its place; an error keeps it from doing so.
  std::function<Status(const std::string& file)> before_publishing;
  bool sync = true;  // return when the library is on the disk; false: for one that is only run
};

[[nodiscard]] Status write_shared_library(const ArtifactSpec& spec, const std::string& path,
                                          const ArtifactOptions& options = {});
[[nodiscard]] Status write_static_library(const ArtifactSpec& spec, const std::string& path,
                                          const ArtifactOptions& options = {});
// An error if this is no C identifier, or one that a program cannot use.
[[nodiscard]] Status check_prefix(const std::string& prefix);
[[nodiscard]] Status write_header(const ArtifactSpec& spec, const std::string& path);
[[nodiscard]] std::string header_text(const ArtifactSpec& spec);

// The block of runtime/plan.h. With it, kernels and weights in memory make a runtime::ModelImage,
// if the weights lie at weight_offsets(spec).
[[nodiscard]] Result<std::string> encode_plan(const ArtifactSpec& spec);
// Where each weight starts; one more entry: the size of all.
[[nodiscard]] std::vector<int64_t> weight_offsets(const ArtifactSpec& spec);

}  // namespace hone::codegen
