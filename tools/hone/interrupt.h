// tools/hone/interrupt.h - Ctrl-C. The first SIGINT or SIGTERM sets a flag that long work looks at;
// the second one kills, as if nobody had listened. So does SIGHUP, of a closed terminal, but that
// never kills.
#pragma once

#include <atomic>

namespace hone::tool {

// Listens from now on; the flag lives as long as the process.
[[nodiscard]] const std::atomic<bool>& listen_for_interrupt();

}  // namespace hone::tool
