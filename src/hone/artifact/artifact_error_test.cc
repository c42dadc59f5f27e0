// Bad specs and a hostile system: one clear error, and nothing written or lost.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "hone/artifact/artifact.h"
#include "hone/artifact/artifact_testing.h"
#include "hone/base/file.h"
#include "hone/model.h"
#include "hone/runtime/cpu_features.h"

namespace hone::artifact {
namespace {

using testing::filter_spec;
using testing::Folder;

ArtifactSpec good_spec() { return filter_spec(testing::read_file(HONE_TEST_KERNELS)); }

// Writes the spec over a file that is there: it must fail and leave that file alone.
void expect_refused(const ArtifactSpec& spec, const std::string& expected,
                    const ArtifactOptions& options = {}) {
  const Folder folder;
  const std::string path = folder.file("model.so");
  std::ofstream(path) << "precious";
  const Status status = write_shared_library(spec, path, options);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
  EXPECT_EQ(testing::read_file(path), "precious");
  EXPECT_EQ(folder.num_files(), 1);
}

TEST(artifact_error, prefix_is_no_identifier) {
  for (const char* prefix : {"", "2net", "a-b", "a b", "n\xc3\xa4h"}) {
    ArtifactSpec spec = good_spec();
    spec.prefix = prefix;
    expect_refused(spec, "expected a C identifier");
  }
  for (const char* prefix : {"int", "class", "pthread"}) {
    ArtifactSpec spec = good_spec();
    spec.prefix = prefix;
    expect_refused(spec, "which C, C++ or libc uses");
  }
}

TEST(artifact_error, feature_cannot_be_checked) {
  ArtifactSpec spec = good_spec();
  spec.features = {"warp-drive"};
  expect_refused(spec, "CPU feature warp-drive cannot be checked");
}

TEST(artifact_error, objects_are_for_two_machines_or_for_an_unknown_one) {
  ArtifactSpec spec = good_spec();
  std::string object = spec.executables[0].code.str();
  object[18] = static_cast<char>(object[18] == 62 ? 183 : 62);  // e_machine
  spec.executables.push_back(spec.executables[0]);
  spec.executables.back().code = object;
  expect_refused(spec, "cannot be in one library");
  object[18] = static_cast<char>(243);  // RISC-V
  spec.executables.back().code = object;
  expect_refused(spec, "machine 243");
}

TEST(artifact_error, there_is_no_runtime_for_the_kernels) {
  const Runtimes none = [](Machine) { return MachineRuntime(); };
  expect_refused(good_spec(),
                 fmt::format("kernels for {} cannot be linked: ", machine_name(host_machine())),
                 {.runtimes = none});
}

TEST(artifact_error, without_a_runtime_it_says_what_helps) {
  for (const Machine machine : {Machine::kAArch64, Machine::kX86_64})
    EXPECT_EQ(no_runtime(machine).message(),
              fmt::format("kernels for {} cannot be linked: this Hone was built without its "
                          "runtime, which needs a cross compiler: run scripts/setup.sh and build "
                          "Hone again",
                          machine_name(machine)));
}

TEST(artifact_error, object_is_garbage) {
  ArtifactSpec spec = good_spec();
  spec.executables[0].code = std::string("garbage");
  expect_refused(spec, "not an object file");
}

TEST(artifact_error, indices_are_out_of_range) {
  ArtifactSpec spec = good_spec();
  spec.steps[1].kernel = 3;
  expect_refused(spec, "step filter has kernel 3, but there are 3");
  spec = good_spec();
  spec.steps[1].arguments[1].index = 1;
  expect_refused(spec, "step filter reads weight 1, but there are 1");
  spec = good_spec();
  spec.steps[0].arguments[0].index = 1;
  expect_refused(spec, "an argument of the plan is out of range");
  spec = good_spec();
  spec.zeroed.emplace_back(0, spec.arena_bytes + 1);
  expect_refused(spec, "a zeroed region of the plan is out of range");
}

TEST(artifact_error, linker_is_missing) {
  expect_refused(good_spec(), "the linker /no/such/ld is not there", {.linker = "/no/such/ld"});
  expect_refused(good_spec(), "the linker no-such-ld is not there", {.linker = "no-such-ld"});
}

TEST(artifact_error, linker_fails) {
  ArtifactSpec spec = good_spec();
  spec.kernel_symbols[0] = "no_such_kernel";
  expect_refused(spec, "no_such_kernel");
}

TEST(artifact_error, folder_is_not_there) {
  const Status status = write_shared_library(good_spec(), "/no/such/folder/model.so");
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "cannot write '/no/such/folder/model.so': no such file or directory");
  EXPECT_FALSE(write_header(good_spec(), "/no/such/folder/model.h").ok());
}

TEST(artifact_error, target_is_a_folder) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("model.so"));
  const Status status = write_shared_library(good_spec(), folder.file("model.so"));
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("cannot write"), std::string::npos) << status.message();
  EXPECT_EQ(folder.num_files(), 1);
}

// A limit on the size of files stands in for a full disk; in a child, as it cannot be taken back.
TEST(artifact_error, disk_is_full) {
  const Folder folder;
  ArtifactSpec spec = good_spec();
  const std::vector<char> large(3 << 20);
  spec.weights.push_back({large.data(), std::ssize(large)});
  const std::string path = folder.file("model.so");
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Status status = write_shared_library(spec, path);
    const bool expected =
        !status.ok() && status.message().find(errno_text(EFBIG)) != std::string::npos;
    _exit(expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(folder.num_files(), 0);
}

TEST(artifact_error, cpu_lacks_a_feature) {
  // No CPU has all of these.
  std::string absent;
  for (const char* name :
       {"sse4a", "amx-fp16", "avx512vp2intersect", "avxneconvert", "sve2", "sve"})
    if (runtime::cpu_feature(name) == runtime::FeatureState::kAbsent) absent = name;
  ASSERT_FALSE(absent.empty());
  const Folder folder;
  ArtifactSpec spec = good_spec();
  spec.features = {absent};
  ASSERT_TRUE(write_shared_library(spec, folder.file("model.so")).ok());
  const Result<Model> model = Model::load(folder.file("model.so"));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("compiled for a CPU with " + absent), std::string::npos)
      << model.status().message();
}

}  // namespace
}  // namespace hone::artifact
