// target/topology.h - the cores and data caches of this machine, as hwloc reports them.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::target {

struct CacheSize {
  int level;
  int64_t bytes;
  int line_bytes;
  int shared_by;  // number of physical cores that share it
};

struct Topology {
  int cores = 1;   // physical cores that affinity and the cgroup's quota leave to this process
  double ghz = 0;  // nominal clock; 0 if not reported
  std::vector<CacheSize> caches;  // data caches of the first core that this process may use
};

[[nodiscard]] Topology read_topology();
// Returns one CPU of each core that this process may run on, by the system's numbers.
[[nodiscard]] std::vector<int> cpus_of_cores();

}  // namespace hone::target
