// What of backend/registry.h a program has that runs code and makes none: load(), for CPUs.
#include "hone/backend/loading/loaded_object.h"
#include "hone/backend/registry.h"

namespace hone::backend {
namespace {

class LoadedObjects final : public LoadedExecutable {
 public:
  LoadedObjects(std::unique_ptr<LoadedObject> code, std::unique_ptr<LoadedObject> prepare_code)
      : code_(std::move(code)), prepare_code_(std::move(prepare_code)) {}
  [[nodiscard]] Status run(const EntryPoint& entry, void* const* args, void* scratch,
                           int64_t first_tile, int64_t last_tile, int thread) const override {
    const hone_kernel kernel = function(entry.symbol);
    if (kernel == nullptr) return invalid("the executable has no function {}", entry.symbol);
    const int result = kernel(args, scratch, first_tile, last_tile, thread);
    return result == 0 ? ok_status()
                       : error(Code::kInternal, "a kernel failed with code {}", result);
  }
  [[nodiscard]] hone_kernel function(const std::string& symbol) const override {
    void* found = code_->symbol(symbol);
    if (found == nullptr && prepare_code_ != nullptr) found = prepare_code_->symbol(symbol);
    return reinterpret_cast<hone_kernel>(found);
  }

 private:
  std::unique_ptr<LoadedObject> code_, prepare_code_;
};

}  // namespace

Result<LoadedPtr> load(const Executable& executable) {
  if (executable.kind != target::Kind::kCpu)
    return error(Code::kUnsupported, "this program loads code for CPUs only");
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<LoadedObject> code,
                        LoadedObject::load(executable.code.str()));
  std::unique_ptr<LoadedObject> prepare_code;
  if (!executable.prepare_code.empty()) {
    HONE_ASSIGN_OR_RETURN(prepare_code, LoadedObject::load(executable.prepare_code.str()));
  }
  return LoadedPtr(std::make_unique<const LoadedObjects>(std::move(code), std::move(prepare_code)));
}

}  // namespace hone::backend
