#include "hone/target/cgroup.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace hone::target {
namespace {

// The group and its parents, ending at the mount point itself.
std::vector<std::string> with_parents(std::string group) {
  std::vector<std::string> result;
  while (!group.empty() && group != "/") {
    result.push_back(group);
    group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
  }
  result.emplace_back();
  return result;
}

std::optional<double> ratio(const std::string& quota, double period) {
  const double value = std::atof(quota.c_str());
  // "nan" is a number to atof(), too.
  if (!std::isfinite(value) || !std::isfinite(period) || value <= 0 || period <= 0)
    return std::nullopt;
  return value / period;
}

// cpu.max: "QUOTA PERIOD" or "max PERIOD".
std::optional<double> read_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 100000;
  file >> quota >> period;
  return ratio(quota, period);
}

std::optional<double> read_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  std::string quota;
  double period = 0;
  quota_file >> quota, period_file >> period;
  return ratio(quota, period);
}

void keep_least(std::optional<double>& least, std::optional<double> value) {
  if (value && (!least || *value < *least)) least = value;
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const std::string& root) {
  const std::string base = root + "/sys/fs/cgroup";
  std::optional<double> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // "ID:CONTROLLERS:PATH"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const std::string& g : with_parents(path)) keep_least(least, read_v2(base + g));
      continue;
    }
    std::istringstream list(controllers);
    std::string controller;
    while (std::getline(list, controller, ',')) {
      if (controller != "cpu") continue;
      for (const std::string& g : with_parents(path)) {
        keep_least(least, read_v1(base + "/cpu" + g));
        keep_least(least, read_v1(base + "/" + controllers + g));
      }
    }
  }
  return least;
}

int usable_cores(int allowed, std::optional<double> quota) {
  // A hair of tolerance: 1.9999 is meant as 2. A part of a core is of no use to a thread that
  // others wait for.
  const int limit =
      quota ? static_cast<int>(std::floor(std::min<double>(allowed, *quota + 1e-3))) : allowed;
  return std::max(1, limit);
}

}  // namespace hone::target
