// backend/registry.h - the back end of each kind of device.
#pragma once

#include <memory>

#include "hone/backend/backend.h"

namespace hone::backend {

// Returns the back end of a kind of device. It is an error if there is none.
[[nodiscard]] Result<std::shared_ptr<const Backend>> of(target::Kind kind);
[[nodiscard]] Result<std::shared_ptr<const Backend>> of(const target::Target& target);
// Gives a kind a back end in place of the one that it has; null leaves it without one. Those
// of CPUs and GPUs are there from the beginning.
void install(target::Kind kind, std::shared_ptr<const Backend> backend);

// Calls compile() of the target's back end.
[[nodiscard]] Result<Executable> compile(const ir::Program& program, const target::Target& target,
                                         std::string_view comment = {});
// Calls load() of the back end that made the executable.
[[nodiscard]] Result<LoadedPtr> load(const Executable& executable);

}  // namespace hone::backend
