// hone-worker: the process that runs and times candidates, so that a crash costs one candidate
// only. Hone starts it with a socket (measure/worker_process.h): it is not for people.
#include <cstdio>
#include <string_view>

#include "hone/base/options.h"
#include "hone/measure/worker.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--fd") {
    const hone::Result<int64_t> fd = hone::parse_int(argv[2], 0, 1 << 20);
    if (fd.ok()) return hone::measure::worker_main(static_cast<int>(*fd));
  }
  std::fputs("hone-worker: Hone starts this program itself, with --fd and an open socket\n",
             stderr);
  return 2;
}
