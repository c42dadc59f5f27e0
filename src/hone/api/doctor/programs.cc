#include "hone/api/doctor/programs.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "hone/artifact/linker.h"
#include "hone/base/file.h"
#include "hone/base/installation.h"
#include "hone/base/status.h"
#include "hone/base/worker_program.h"
#include "hone/cost/boosting.h"
#include "hone/machine/local.h"
#include "hone/measure/counters.h"
#include "hone/session/shipped_records.h"
#include "hone/version.h"

namespace hone::doctor {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

// Returns a finding with what was found, or with the error and the cure.
Finding of_status(std::string name, bool needed, const Status& status, std::string found,
                  std::string cure) {
  if (status.ok()) return {std::move(name), State::kOk, needed, std::move(found), ""};
  return {std::move(name), State::kMissing, needed, status.message(), std::move(cure)};
}

// The value of a line such as "Seccomp:\t2"; empty if there is none.
std::string value_of(const std::string& status, const std::string& key) {
  const size_t at = status.find("\n" + key + ":");
  if (at == std::string::npos) return "";
  const size_t from = status.find_first_not_of(" \t", at + key.size() + 2);
  return status.substr(from, status.find('\n', from) - from);
}

// The entries of PATH, but for relative ones, which may be anybody's.
std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> folders;
  for (size_t from = 0; from <= path.size();) {
    const size_t end = std::min(path.find(':', from), path.size());
    if (end > from && path[from] == '/') folders.push_back(path.substr(from, end - from));
    from = end + 1;
  }
  return folders;
}

// Adds what Python packages a folder such as lib/python3.11/site-packages has.
void add_packages(const fs::path& folder, std::set<std::string>& found) {
  constexpr std::string_view kPrefix = "hone-", kSuffix = ".dist-info";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    found.insert(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
  }
}

// Adds those below PREFIX/lib/python3.N.
void add_packages_of(const fs::path& prefix, std::set<std::string>& found) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      add_packages(entry.path() / packages, found);
  }
}

}  // namespace

Finding look_at_linker() {
  const Result<std::string> linker = artifact::find_linker("", artifact::host_machine());
  return of_status("linker", true, linker.status(), linker.ok() ? *linker : "",
                   "apt-get install binutils, or lld");
}

Finding look_at_worker() {
  const Result<std::string> worker = find_worker_program("");
  return of_status("worker program", true, worker.status(), worker.ok() ? *worker : "",
                   "install Hone as a whole (cmake --install), or name the program by HONE_WORKER");
}

Finding look_at_measuring(const std::string& status) {
  const machine::Machine& here = machine::local();
  const Status measured = here.make_runner({}, here.target()).status();
  const bool filtered = value_of(status, "Seccomp") == "2";
  return of_status(
      "measuring", true, measured, "a kernel was compiled, run by a worker and verified",
      filtered
          ? "system calls are filtered (seccomp), which may forbid memory with code, limits of "
            "processes or sockets: docker run --security-opt seccomp=unconfined"
          : "a worker must be allowed to start, to have memory with code and sockets, and to "
            "get memory: see ulimit -a");
}

Finding look_at_counters() {
  const Result<measure::HardwareEvents>& events = measure::machine_events();
  if (events.ok())
    return {"hardware counters", State::kOk, false, std::string(events->plan->name), ""};
  return {"hardware counters", State::kWarning, false,
          events.status().message() + ": what limits a kernel is not counted",
          "sudo sysctl kernel.perf_event_paranoid=2; in a container, --cap-add PERFMON; a virtual "
          "machine needs its host's counters"};
}

Finding look_at_shipped_records() {
  const std::string folder = shipped_folder();
  if (!folder.empty()) return {"shipped records", State::kOk, false, folder, ""};
  return {"shipped records", State::kWarning, false,
          "no share/hone/records in the installation: untuned kernels are slower",
          "install Hone as a whole (cmake --install)"};
}

Finding look_at_trees() {
  return of_status("training of trees", false, cost::boosting_status(), "XGBoost",
                   "apt-get install libxgboost0, or pip install lightgbm for --booster lightgbm");
}

Finding look_at_nets() {
  // It is not loaded: libtorch takes a second and memory.
  const std::vector<std::string> places = installed_places("lib/hone/libhone_torch.so");
  for (const std::string& place : places) {
    if (file_exists(place)) return {"training of nets", State::kOk, false, place, ""};
  }
  return {"training of nets", State::kMissing, false,
          fmt::format("no {}, which is built where libtorch is", fmt::join(places, ", ")),
          "apt-get install libtorch-dev and build Hone again"};
}

Finding look_at_python(const std::string& path, const std::string& home) {
  Finding finding = {.name = "Python package", .found = "none found", .cure = {}};
  std::set<std::string> versions;
  for (const std::string& folder : folders_of(path)) {
    std::error_code ignored;
    if (fs::exists(fs::path(folder) / "python3", ignored))
      add_packages_of(fs::path(folder).parent_path(), versions);
  }
  if (home.starts_with('/')) add_packages_of(fs::path(home) / ".local", versions);
  if (versions.empty()) return finding;
  finding.found = fmt::format("hone {}", fmt::join(versions, ", hone "));
  if (versions == std::set<std::string>{std::string(version())}) return finding;
  finding.state = State::kWarning;
  finding.found +=
      fmt::format(", but this is {}: their records and libraries may differ", version());
  finding.cure = "install the wheel of this version";
  return finding;
}

}  // namespace hone::doctor
