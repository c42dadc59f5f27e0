#include "hone/target/topology.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "hone/target/cgroup.h"

namespace hone::target {
namespace {

// CPU numbers of the affinity mask; room for more CPUs than cpu_set_t holds.
std::vector<int> allowed_cpus() {
  for (int limit = CPU_SETSIZE; limit <= (1 << 18); limit *= 4) {
    cpu_set_t* set = CPU_ALLOC(limit);
    const size_t bytes = CPU_ALLOC_SIZE(limit);
    CPU_ZERO_S(bytes, set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int i = 0; i < limit; ++i) {
        if (CPU_ISSET_S(i, bytes, set)) cpus.push_back(i);
      }
    }
    CPU_FREE(set);
    if (!cpus.empty()) return cpus;
  }
  std::vector<int> cpus(std::max(1U, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < cpus.size(); ++i) cpus[i] = static_cast<int>(i);
  return cpus;
}

double read_khz(const std::string& path) {
  std::ifstream file(path);
  double khz = 0;
  file >> khz;
  return khz;
}

double nominal_ghz(int cpu) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/";
  for (const char* name : {"base_frequency", "cpuinfo_max_freq"}) {
    if (const double khz = read_khz(folder + name); khz > 0) return khz * 1e-6;
  }
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    double mhz = 0;
    if (std::sscanf(line.c_str(), "cpu MHz : %lf", &mhz) == 1 && mhz > 0) return mhz * 1e-3;
  }
  return 0;
}

int cores_below(hwloc_topology_t topology, hwloc_const_cpuset_t set) {
  return std::max(1, hwloc_get_nbobjs_inside_cpuset_by_type(topology, set, HWLOC_OBJ_CORE));
}

void keep_only_cpu_objects(hwloc_topology_t topology) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
}

// Calls f with this machine's topology, or not at all if it cannot be read.
template <typename F>
void with_topology(const F& f) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return;
  keep_only_cpu_objects(topology);
  if (hwloc_topology_load(topology) == 0) f(topology);
  hwloc_topology_destroy(topology);
}

// Two hardware threads of a core count once. Empty if the machine does not tell of cores.
std::vector<int> one_of_each_core(hwloc_topology_t topology, const std::vector<int>& cpus) {
  std::set<unsigned> cores;
  std::vector<int> first;
  for (const int cpu : cpus) {
    hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(cpu));
    hwloc_obj_t core =
        pu == nullptr ? nullptr : hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    if (core != nullptr && cores.insert(core->logical_index).second) first.push_back(cpu);
  }
  return first;
}

}  // namespace

std::vector<int> cpus_of_cores() {
  std::vector<int> cpus = allowed_cpus();
  with_topology([&](hwloc_topology_t topology) {
    std::vector<int> first = one_of_each_core(topology, cpus);
    if (!first.empty()) cpus = std::move(first);
  });
  return cpus;
}

Topology read_topology() {
  Topology result;
  const std::vector<int> cpus = allowed_cpus();
  const auto quota = cgroup_cpu_quota();
  result.cores = usable_cores(static_cast<int>(cpus.size()), quota);
  result.ghz = nominal_ghz(cpus.front());

  with_topology([&](hwloc_topology_t topology) {
    const size_t cores = one_of_each_core(topology, cpus).size();
    if (cores > 0) result.cores = usable_cores(static_cast<int>(cores), quota);
    hwloc_obj_t first = hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(cpus.front()));
    for (hwloc_obj_t o = first; o != nullptr; o = o->parent) {
      if (!hwloc_obj_type_is_dcache(o->type)) continue;
      const auto& cache = o->attr->cache;
      result.caches.push_back({static_cast<int>(cache.depth), static_cast<int64_t>(cache.size),
                               cache.linesize > 0 ? static_cast<int>(cache.linesize) : 64,
                               cores_below(topology, o->cpuset)});
    }
    std::sort(result.caches.begin(), result.caches.end(),
              [](const CacheSize& a, const CacheSize& b) { return a.level < b.level; });
  });
  return result;
}

}  // namespace hone::target
