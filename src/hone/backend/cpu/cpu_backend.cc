#include "hone/backend/cpu/cpu_backend.h"

#include <utility>

#include "hone/backend/cpu/code_cache.h"
#include "hone/backend/cpu/count_code.h"
#include "hone/backend/cpu/inner_loop.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

class LoadedObjects final : public LoadedExecutable {
 public:
  explicit LoadedObjects(std::unique_ptr<LoadedCode> code) : code_(std::move(code)) {}
  [[nodiscard]] Status run(const EntryPoint& entry, void* const* args, void* scratch,
                           int64_t first_tile, int64_t last_tile, int thread) const override {
    const hone_kernel kernel = function(entry.symbol);
    if (kernel == nullptr)
      return error(Code::kInternal, "the executable has no function {}", entry.symbol);
    const int result = kernel(args, scratch, first_tile, last_tile, thread);
    if (result != 0) return error(Code::kInternal, "a kernel failed with code {}", result);
    return ok_status();
  }
  [[nodiscard]] hone_kernel function(const std::string& symbol) const override {
    return reinterpret_cast<hone_kernel>(code_->symbol(symbol));
  }

 private:
  std::unique_ptr<LoadedCode> code_;
};

class CpuBackend final : public Backend {
 public:
  [[nodiscard]] std::span<const ir::Pass> passes() const override { return ir::cpu_pipeline(); }
  [[nodiscard]] Result<Executable> compile(const ir::Program& program, const target::Target& target,
                                           std::string_view /*comment*/) const override {
    return code_cache().compile(program, target.cpu());
  }
  [[nodiscard]] Result<LoadedPtr> load(const Executable& executable) const override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<LoadedCode> code,
                          LoadedCode::load(executable.code.str(), executable.prepare_code.str()));
    return LoadedPtr(std::make_unique<const LoadedObjects>(std::move(code)));
  }
  [[nodiscard]] Result<Inspection> inspect(const ir::Program& program, const Executable& executable,
                                           const target::Target& target) const override {
    Inspection found{.registers_needed = registers_needed(program, target.cpu())};
    HONE_ASSIGN_OR_RETURN(found.loops,
                          inner_loops(executable.code.str(), executable.entries, target.cpu()));
    HONE_ASSIGN_OR_RETURN(found.counts, count(program, executable, target, {}));
    return found;
  }
  [[nodiscard]] Result<std::vector<CountedCode>> count(const ir::Program& program,
                                                       const Executable& executable,
                                                       const target::Target& target,
                                                       const CountOptions& options) const override {
    return count_code(executable.code.str(), executable.entries, program, target.cpu(), {},
                      options.simulates);
  }
};

}  // namespace

std::shared_ptr<const Backend> make_backend() { return std::make_shared<const CpuBackend>(); }

}  // namespace hone::backend::cpu
