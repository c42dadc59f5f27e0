// measure/self_test.h - tests whether this machine can measure at all, before anything is measured.
// A kernel that cannot fail is compiled, run by the worker and verified, which takes a few
// milliseconds. A problem with the machine is then reported once, not by thousands of candidates
// that all fail.
#pragma once

#include <memory>

#include "hone/measure/local_runner.h"
#include "hone/target/target.h"

namespace hone::measure {

[[nodiscard]] Status self_test(Runner& runner, const target::Target& target);
// Returns a local runner that has passed the test.
[[nodiscard]] Result<std::unique_ptr<Runner>> make_tested_runner(const WorkerOptions& worker,
                                                                 const target::Target& target);

}  // namespace hone::measure
