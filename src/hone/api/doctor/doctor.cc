#include "hone/doctor.h"

#include <algorithm>
#include <cstdlib>

#include "hone/api/doctor/gpus.h"
#include "hone/api/doctor/places.h"
#include "hone/api/doctor/programs.h"
#include "hone/api/doctor/system.h"
#include "hone/base/file.h"

namespace hone {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string state_name(Finding::State state) {
  switch (state) {
    case Finding::State::kOk: return "ok";
    case Finding::State::kWarning: return "warning";
    case Finding::State::kMissing: return "missing";
  }
  return "";
}

std::vector<Finding> examine_machine(const DoctorOptions& options) {
  using namespace doctor;
  const Result<std::string> status = read_file("/proc/self/status");
  return {look_at_linker(),
          look_at_worker(),
          look_at_measuring(status.ok() ? *status : ""),
          look_at_temporary_folder(),
          look_at_database(options.db),
          look_at_cpus(cpus_here()),
          look_at_separation(),
          look_at_governor(),
          look_at_turbo(),
          look_at_memory(),
          look_at_huge_pages(),
          look_at_counters(),
          look_at_shipped_records(),
          look_at_trees(),
          look_at_nets(),
          look_at_python(variable("PATH"), variable("HOME")),
          look_at_cuda(),
          look_at_nvrtc(),
          look_at_opencl(),
          look_at_code_cache()};
}

bool can_tune(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.needed && finding.state == Finding::State::kMissing;
  });
}

}  // namespace hone
