// artifact/artifact.h - writes a compiled model as one shared or static library with a C interface
// (runtime/hone_model.h), and the C header for it.
//
// The file depends on libc and libm only. Hone carries the runtime that is linked in, and needs a
// linker (`ld` or `ld.lld`) on the machine. A static library has no global symbols but the
// interface, so any number of them with different prefixes can be linked into one program. Equal
// specs give equal bytes. The output appears complete or not at all: it is made in a temporary
// folder beside its target, then published as base/output_file.h says.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "hone/artifact/embedded_runtime.h"
#include "hone/backend/executable.h"
#include "hone/base/status.h"
#include "hone/runtime/plan.h"
#include "hone/tensor/dtype.h"

namespace hone::artifact {

using runtime::ArgumentKind;

// Sizes that the shapes of the inputs decide when a model runs, as in runtime/plan.h: symbols of a
// range that includes both ends, and forms, which follow from them. Users know symbols that count
// steps by what they count: it is said as the name.
struct ArtifactSymbol {
  std::string name;
  int64_t min = 1, max = 1;
  int64_t step = 1;
};
struct ArtifactTerm {
  int64_t factor = 1;
  std::vector<int> symbols;  // indices into ArtifactSpec::symbols, and behind them forms
};
struct ArtifactForm {
  std::vector<ArtifactTerm> terms;
  int64_t offset = 0, divisor = 1;
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  [[nodiscard]] bool has_least() const { return least != std::numeric_limits<int64_t>::min(); }
  [[nodiscard]] bool has_most() const { return most != std::numeric_limits<int64_t>::max(); }
};
// A part of a dimension: a form with its largest value, or, if `form` is -1, a number.
struct ArtifactPart {
  int form = -1;
  int64_t most = 1;
};
using ArtifactDims = std::vector<std::vector<ArtifactPart>>;
// A step of ceil(size / divisor) * multiplier tiles, but no more than it has. -1: of all its tiles.
struct ArtifactTileLimit {
  int form = -1;
  int64_t divisor = 1, multiplier = 1;
};

// A step that runs if the value of a form is `from` to `most`. -1: it always runs.
struct ArtifactInterval {
  int form = -1;
  int64_t from = 0, most = 0;
};
// A step of runs whose size of this form is `least` or more. -1: of all runs.
struct ArtifactRunLimit {
  int form = -1;
  int64_t least = 0;
};

struct ArtifactTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // the largest
  // For outputs: arena offset of the int64 extents that a step writes, or -1.
  int64_t actual_shape = -1;
  ArtifactDims dims;  // parts of each dimension; empty if none varies with the inputs' shapes
};

struct ArtifactArgument {
  ArgumentKind kind = ArgumentKind::kArena;
  int index = 0;       // number of the input, output or weight; 0 for the arena
  int64_t offset = 0;  // bytes from the start of the input, output, weight or arena
  // The bytes that a kernel of the host may touch, and whether it may write them. A model with a
  // device needs them, as that kernel works on copies.
  int64_t bytes = -1;
  bool written = false;
};

struct ArtifactStep {
  std::string name;
  int kernel = 0;  // index into ArtifactSpec::kernel_symbols; several steps may share one
  int64_t num_tiles = 1;
  int max_threads = 0;  // 0 means all
  double flops = 0;
  std::vector<ArtifactArgument> arguments;
  std::string kernel_class;  // for reports, such as "conv2d+bias+relu"
  double bytes = 0;          // bytes that are read and written, each counted once
  double least_flops = 0;    // FLOPs of the algorithm that needs the fewest
  bool joins = false;        // runs concurrently with the step before
  int units = 0;             // for concurrent steps: its share of their work; else 0
  ArtifactTileLimit limit;
  ArtifactInterval when;
  ArtifactRunLimit run;
};

// Steps that are repeated, as PlanLoop says; what this has no field for is in `plan`, but for its
// strings and `may_want_more`.
struct ArtifactLoop {
  std::string name;
  std::string beyond;  // empty: the loop ends after `most` turns
  runtime::PlanLoop plan = {};
};

struct ArtifactWeight {
  const void* data = nullptr;  // must be valid until the file is written
  int64_t bytes = 0;
};

struct ArtifactSpec {
  std::string name;                   // name of the model, for the header's comment
  std::string prefix = "hone_model";  // prefix of all exported symbols; a C identifier
  std::vector<ArtifactTensor> inputs;
  std::vector<ArtifactTensor> outputs;
  int64_t arena_bytes = 0;
  int64_t scratch_bytes = 0;  // scratch memory per thread
  // (offset, bytes) of parts of the arena that are zeroed at create.
  std::vector<std::pair<int64_t, int64_t>> zeroed;
  std::vector<ArtifactStep> steps;      // in the order of execution
  std::vector<ArtifactWeight> weights;  // each starts on a 64-byte boundary
  // These define the kernels. The code for CPUs must be what the linker links, that for a GPU a
  // container of runtime/device/code.h.
  std::vector<backend::Executable> executables;
  std::vector<std::string> kernel_symbols;
  // The device that runs the code for GPUs; kNone if there is none. Where several are of the kind,
  // its name or its platform's contains `device_name`.
  runtime::DeviceKind device = runtime::DeviceKind::kNone;
  std::string device_name;
  std::vector<std::string> features;  // CPU features that the kernels need, as LLVM names them
  std::vector<ArtifactSymbol> symbols;
  std::vector<ArtifactForm> forms;
  int64_t sizes = -1;  // arena offset of i64[runtime::kMaxForms], the forms' values; -1 without any
  std::vector<ArtifactLoop> loops;        // each before those inside
  std::vector<runtime::PlanCopy> copies;  // what the loops copy
};

struct ArtifactOptions {
  std::string linker;  // path of a program; if empty, the first one for the machine in PATH
  // If a static library has more bytes of weights, programs place them outside the 2 GiB that
  // x86-64's code can reach.
  int64_t near_weights = int64_t{1} << 30;
  // Called with the finished file before it is published; an error prevents that.
  std::function<Status(const std::string& file)> before_publishing;
  bool sync = true;  // returns only when the library is on the disk; false for one that is only run
  Runtimes runtimes = runtime_of;  // what libraries are linked from, by machine
};

[[nodiscard]] Status write_shared_library(const ArtifactSpec& spec, const std::string& path,
                                          const ArtifactOptions& options = {});
[[nodiscard]] Status write_static_library(const ArtifactSpec& spec, const std::string& path,
                                          const ArtifactOptions& options = {});
// Checks that this is a C identifier that a program can use as a prefix.
[[nodiscard]] Status check_prefix(const std::string& prefix);
[[nodiscard]] Status write_header(const ArtifactSpec& spec, const std::string& path);
[[nodiscard]] std::string header_text(const ArtifactSpec& spec);
// Returns what a dimension varies with, such as "batch*49" or "past + seq"; "" if it is fixed.
[[nodiscard]] std::string dim_text(const ArtifactSpec& spec, const std::vector<ArtifactPart>& dim);

// The place where a kernel runs.
struct KernelPlace {
  int executable = -1;                         // -1 on the host
  const backend::EntryPoint* entry = nullptr;  // null on the host
};
// Returns the place of each of spec.kernel_symbols: on the device if the code of a GPU has it.
[[nodiscard]] std::vector<KernelPlace> kernel_places(const ArtifactSpec& spec);

// Returns the loops as the runtime reads them, without their strings.
[[nodiscard]] std::vector<runtime::PlanLoop> plan_loops(const ArtifactSpec& spec);
// Returns the block of runtime/plan.h. Together with kernels, and with weights at
// weight_offsets(spec), it makes a runtime::ModelImage.
[[nodiscard]] Result<std::string> encode_plan(const ArtifactSpec& spec);
// Returns the offset of each weight, followed by the size of all.
[[nodiscard]] std::vector<int64_t> weight_offsets(const ArtifactSpec& spec);

}  // namespace hone::artifact
