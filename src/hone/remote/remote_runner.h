// remote/remote_runner.h - measures on a machine elsewhere. A connection that is lost is made
// again, and what was under way there goes on. If the server itself was started again, because it
// or its machine crashed, what it was measuring is answered as a crash, and the rest is sent once
// more.
#pragma once

#include <memory>

#include "hone/measure/runner.h"
#include "hone/remote/machine_file.h"

namespace hone::remote {

// Connects. Later, an error of the runner means that the machine did not come back in the time that
// it is waited for, or refuses what it is sent.
[[nodiscard]] Result<std::unique_ptr<measure::Runner>> make_remote_runner(
    const MachineAddress& address);

}  // namespace hone::remote
