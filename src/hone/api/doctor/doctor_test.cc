#include "hone/doctor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "hone/api/doctor/places.h"
#include "hone/api/doctor/programs.h"
#include "hone/api/doctor/system.h"
#include "hone/base/file.h"
#include "hone/version.h"

namespace hone::doctor {
namespace {

using State = Finding::State;

// A machine whose files say what a test writes there.
class Machine {
 public:
  [[nodiscard]] const std::string& root() const { return folder_.path(); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(write_file_atomic(file.string(), text).ok());
  }

 private:
  TempDir folder_ = TempDir::create().value();
};

// Sets a variable of the environment as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

void expect(const Finding& finding, State state, const std::string& found) {
  EXPECT_EQ(state_name(finding.state), state_name(state)) << finding.found;
  EXPECT_NE(finding.found.find(found), std::string::npos) << finding.found;
  EXPECT_EQ(finding.cure.empty(), state == State::kOk) << finding.cure;
}

TEST(doctor, cpus_that_affinity_and_a_quota_leave) {
  const Machine machine;
  expect(look_at_cpus({4, 4}, machine.root()), State::kOk, "4 CPUs");
  expect(look_at_cpus({4, 2}, machine.root()), State::kOk, "leaves 2 of 4 CPUs");
  machine.write("/proc/self/cgroup", "0::/box\n");
  machine.write("/sys/fs/cgroup/box/cpu.max", "150000 100000\n");
  expect(look_at_cpus({4, 4}, machine.root()), State::kWarning, "is worth 1.5: 1 may run");
  machine.write("/sys/fs/cgroup/box/cpu.max", "400000 100000\n");
  expect(look_at_cpus({4, 4}, machine.root()), State::kOk, "4 CPUs");
}

TEST(doctor, governors_of_the_clock) {
  const Machine machine;
  expect(look_at_governor(machine.root()), State::kOk, "not told");
  const auto write = [&](int cpu, const char* governor) {
    machine.write(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu),
                  governor);
  };
  write(0, "performance\n");
  expect(look_at_governor(machine.root()), State::kOk, "performance");
  write(1, "powersave\n");
  expect(look_at_governor(machine.root()), State::kWarning, "performance, powersave");
}

TEST(doctor, turbo_by_either_file) {
  const Machine machine;
  expect(look_at_turbo(machine.root()), State::kOk, "not told");
  machine.write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  expect(look_at_turbo(machine.root()), State::kOk, "on:");
  machine.write("/sys/devices/system/cpu/cpufreq/boost", "0\n");
  expect(look_at_turbo(machine.root()), State::kOk, "off");
  machine.write("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
  expect(look_at_turbo(machine.root()), State::kOk, "on:");
}

TEST(doctor, memory_that_is_free) {
  const Machine machine;
  expect(look_at_memory(machine.root()), State::kOk, "does not say");
  machine.write("/proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:     524288 kB\n");
  expect(look_at_memory(machine.root()), State::kWarning, "0.5 GiB of");
  machine.write("/proc/meminfo", "MemAvailable: 1048576 kB\n");
  expect(look_at_memory(machine.root()), State::kOk, "1.0 GiB of");
}

TEST(doctor, huge_pages) {
  const Machine machine;
  expect(look_at_huge_pages(machine.root()), State::kWarning, "no transparent huge pages");
  const char* const file = "/sys/kernel/mm/transparent_hugepage/enabled";
  machine.write(file, "always [madvise] never\n");
  expect(look_at_huge_pages(machine.root()), State::kOk, "madvise");
  machine.write(file, "always madvise [never]\n");
  expect(look_at_huge_pages(machine.root()), State::kWarning, "never");
}

TEST(doctor, a_linker_in_the_path) {
  const Machine machine;
  machine.write("/ld", "#!/bin/sh\n");
  const Variable path("PATH", machine.root());
  Finding finding = look_at_linker();
  // Without one in PATH an installation may have its own.
  if (finding.state != State::kOk) expect(finding, State::kMissing, "ld");
  std::filesystem::permissions(machine.root() + "/ld", std::filesystem::perms::all);
  expect(look_at_linker(), State::kOk, machine.root() + "/ld");
}

TEST(doctor, a_worker_that_is_not_there_is_needed) {
  expect(look_at_measuring(""), State::kOk, "a kernel was compiled, run by a worker and verified");
  const Variable worker("HONE_WORKER", "/nowhere/hone-worker");
  expect(look_at_worker(), State::kMissing, "/nowhere/hone-worker");
  const Finding measuring = look_at_measuring("Name:\thone\nSeccomp:\t2\n");
  expect(measuring, State::kMissing, "/nowhere/hone-worker");
  EXPECT_NE(measuring.cure.find("seccomp=unconfined"), std::string::npos) << measuring.cure;
  EXPECT_EQ(look_at_measuring("Name:\thone\nSeccomp:\t0\n").cure.find("seccomp"),
            std::string::npos);
  EXPECT_FALSE(can_tune({look_at_worker()}));
}

TEST(doctor, a_worker_that_cannot_work) {
  const Machine machine;
  machine.write("/worker", "#!/bin/sh\nexit 3\n");
  std::filesystem::permissions(machine.root() + "/worker", std::filesystem::perms::all);
  const Variable worker("HONE_WORKER", machine.root() + "/worker");
  expect(look_at_worker(), State::kOk, "/worker");
  expect(look_at_measuring(""), State::kMissing, "worker");
}

TEST(doctor, places_for_files) {
  const Machine machine;
  machine.write("/file", "");
  {
    const Variable data("XDG_DATA_HOME", machine.root() + "/new");
    expect(look_at_database(""), State::kOk, "/new/hone/hone.db, which does not exist yet");
    EXPECT_FALSE(std::filesystem::exists(machine.root() + "/new"));
  }
  {
    const Variable data("XDG_DATA_HOME", machine.root() + "/file");
    expect(look_at_database(""), State::kMissing, "/file is no folder");
  }
  expect(look_at_database(machine.root() + "/none/hone.db"), State::kOk, "does not exist yet");
  machine.write("/broken.db", std::string(8192, 'x'));
  expect(look_at_database(machine.root() + "/broken.db"), State::kMissing, "broken.db");
  expect(look_at_database("postgres://"), State::kMissing, "");
  EXPECT_TRUE(look_at_database("").needed);
  {
    const Variable temporary("TMPDIR", machine.root() + "/nowhere");
    expect(look_at_temporary_folder(), State::kMissing, "/nowhere");
  }
  expect(look_at_temporary_folder(), State::kOk, temporary_folder());
  const Variable cache("HONE_CODE_CACHE", machine.root() + "/file/cache");
  expect(look_at_code_cache(), State::kWarning, "/file is no folder");
}

TEST(doctor, packages_of_python) {
  const Machine machine;
  const std::string path = machine.root() + "/bin:relative::/nowhere";
  expect(look_at_python(path, ""), State::kOk, "none found");
  machine.write("/bin/python3", "");
  const auto install = [&](const std::string& folder, std::string_view version) {
    machine.write(fmt::format("{}/hone-{}.dist-info/METADATA", folder, version), "");
  };
  install("/lib/python3.11/site-packages", version());
  expect(look_at_python(path, ""), State::kOk, fmt::format("hone {}", version()));
  install("/home/.local/lib/python3.12/site-packages", "0.0.1");
  expect(look_at_python(path, machine.root() + "/home"), State::kWarning, "hone 0.0.1, hone");
}

TEST(doctor, this_machine_can_tune_and_every_finding_has_a_name) {
  const Variable data("XDG_DATA_HOME", TempDir::create().value().path() + "/data");
  const std::vector<Finding> findings = examine_machine();
  EXPECT_TRUE(can_tune(findings));
  std::set<std::string> names;
  for (const Finding& finding : findings) {
    EXPECT_TRUE(names.insert(finding.name).second) << finding.name;
    EXPECT_FALSE(finding.found.empty()) << finding.name;
    EXPECT_EQ(finding.cure.empty(), finding.state == State::kOk) << finding.name;
  }
}

}  // namespace
}  // namespace hone::doctor
