// measure/self_test.h - before anything is measured: whether this machine can do it at all. A
// kernel that cannot fail is compiled, run by the worker and verified, a few milliseconds; what is
// wrong with a machine is said once then, not found out by thousands of candidates that all fail.
#pragma once

#include <memory>

#include "hone/measure/local_runner.h"
#include "hone/target/target.h"

namespace hone::measure {

[[nodiscard]] Status self_test(Runner& runner, const target::Target& target);
// A local runner that has passed it.
[[nodiscard]] Result<std::unique_ptr<Runner>> make_tested_runner(const WorkerOptions& worker,
                                                                 const target::Target& target);

}  // namespace hone::measure
