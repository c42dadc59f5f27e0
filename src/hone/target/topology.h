// target/topology.h - cores and data caches of this machine, as hwloc sees them.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::target {

struct CacheSize {
  int level;
  int64_t bytes;
  int line_bytes;
  int shared_by;  // physical cores
};

struct Topology {
  int cores = 1;   // physical cores that affinity and the cgroup's quota leave to this process
  double ghz = 0;  // nominal; 0: not told
  std::vector<CacheSize> caches;  // data caches above the first core this process may use
};

[[nodiscard]] Topology read_topology();
// One CPU of each core that this process may run on, as the system numbers them.
[[nodiscard]] std::vector<int> cpus_of_cores();

}  // namespace hone::target
