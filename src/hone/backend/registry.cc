#include "hone/backend/registry.h"

#include <array>
#include <mutex>

#include "hone/backend/cpu/cpu_backend.h"
#include "hone/backend/gpu/gpu_backend.h"

namespace hone::backend {
namespace {

struct Registry {
  std::mutex mutex;
  std::array<std::shared_ptr<const Backend>, target::kKinds> backends = {cpu::make_backend(),
                                                                         gpu::make_backend()};
  std::shared_ptr<const Backend>& operator[](target::Kind kind) {
    return backends.at(static_cast<size_t>(kind));
  }
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

Result<std::shared_ptr<const Backend>> of(target::Kind kind) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!all[kind])
    return error(Code::kUnsupported, "there is no back end for the kind of device '{}'",
                 target::kind_name(kind));
  return all[kind];
}

Result<std::shared_ptr<const Backend>> of(const target::Target& target) {
  return of(target.kind());
}

void install(target::Kind kind, std::shared_ptr<const Backend> backend) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all[kind] = std::move(backend);
}

Result<Executable> compile(const ir::Program& program, const target::Target& target,
                           std::string_view comment) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const Backend> backend, of(target));
  return backend->compile(program, target, comment);
}

Result<LoadedPtr> load(const Executable& executable) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const Backend> backend, of(executable.kind));
  return backend->load(executable);
}

}  // namespace hone::backend
