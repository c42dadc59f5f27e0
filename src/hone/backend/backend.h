// backend/backend.h - the interface of a back end, which makes code of loop programs for one kind
// of device and loads it. Whoever holds the code in between (jobs, artifacts, the wire to a worker)
// sees an Executable and does not know its format.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hone/backend/executable.h"
#include "hone/backend/inspection.h"
#include "hone/base/status.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/runtime/kernel_abi.h"
#include "hone/target/target.h"

namespace hone::backend {

// An executable that is ready to run. Its memory is freed when it is destroyed.
class LoadedExecutable {
 public:
  virtual ~LoadedExecutable() = default;
  // Runs the tiles first_tile <= t < last_tile of an entry point and returns when they are done.
  // `args` are the buffers of the program's params in this process, `scratch` is 64-byte aligned
  // memory of Executable::scratch_bytes, and `thread` is the caller's index. It may be called from
  // several threads at once.
  [[nodiscard]] virtual Status run(const EntryPoint& entry, void* const* args, void* scratch,
                                   int64_t first_tile, int64_t last_tile, int thread) const = 0;
  // Returns the entry point as a function of this process, for callers who time it or who run it by
  // the runtime's threads; null if there is no such function.
  [[nodiscard]] virtual hone_kernel function(const std::string& /*symbol*/) const {
    return nullptr;
  }
};
using LoadedPtr = std::unique_ptr<const LoadedExecutable>;

struct CountOptions {
  bool simulates =
      true;  // also by LLVM's model of the processor; else CountedCode::mca_cycles is 0
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Returns the passes that a program goes through between the lowering of a schedule
  // (schedule/lower.h) and compile().
  [[nodiscard]] virtual std::span<const ir::Pass> passes() const = 0;
  // Compiles a program. It may be called from any thread, and equal programs may share one code.
  // The error of a program that becomes too much code is kUnsupported. `comment` says where the
  // program comes from, such as its schedule, for people who read the code; it changes nothing.
  [[nodiscard]] virtual Result<Executable> compile(const ir::Program& program,
                                                   const target::Target& target,
                                                   std::string_view comment) const = 0;
  // Loads an executable of this kind, which may come from another process, for running here.
  [[nodiscard]] virtual Result<LoadedPtr> load(const Executable& executable) const = 0;
  // Describes the code that compile() made of the program. By default, nothing is known of it.
  [[nodiscard]] virtual Result<Inspection> inspect(const ir::Program& /*program*/,
                                                   const Executable& /*executable*/,
                                                   const target::Target& /*target*/) const {
    return Inspection{};
  }
  // Returns Inspection::counts alone.
  [[nodiscard]] virtual Result<std::vector<CountedCode>> count(
      const ir::Program& /*program*/, const Executable& /*executable*/,
      const target::Target& /*target*/, const CountOptions& /*options*/) const {
    return std::vector<CountedCode>{};
  }
};

}  // namespace hone::backend
