// measure/worker.h - the process that runs candidates (tools/worker), started with a socket.
#pragma once

namespace hone::measure {

// Serves the jobs that arrive on the socket `fd` until the other side closes it, and returns the
// exit status. It closes every other descriptor but 0, 1 and 2, ignores SIGINT, writes no core file
// and dies with the thread that started it.
int worker_main(int fd);

}  // namespace hone::measure
