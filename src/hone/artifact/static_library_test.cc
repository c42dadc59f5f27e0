#include "hone/artifact/static_library.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "hone/artifact/artifact_testing.h"
#include "hone/artifact/linker.h"

namespace hone::artifact {
namespace {

using testing::filter_spec;
using testing::Folder;

// A program of two models: y = (0.5, 2, -1) * x and z = (0, 1, 0) * x. Prints y[2], z[2] and the
// numbers of positive values.
constexpr const char* kProgram = R"(
#include <stdio.h>
int main(void) {
  static float x[1000], y[1000], z[1000], positive[1000];
  const void* inputs[] = {x};
  void* outputs_y[] = {y, positive};
  void* outputs_z[] = {z, positive};
  first* a = NULL;
  second_net* b = NULL;
  int rank = 0;
  const int64_t* shape = NULL;
  for (int i = 0; i < 4; ++i) x[i] = (float)(i + 1);
  if (first_create(&a, 2) != 0 || second_net_create(&b, 2) != 0) return 1;
  if (first_run(a, inputs, outputs_y) != 0 || second_net_run(b, inputs, outputs_z) != 0) return 2;
  if (first_output_shape(a, 1, &rank, &shape) != 0 || rank != 1) return 3;
  printf("%g %g %d\n", y[2], z[2], (int)shape[0]);
  first_destroy(a);
  second_net_destroy(b);
  return first_abi_version() == HONE_ABI_VERSION ? 0 : 4;
}
)";

ArtifactSpec spec_of(const char* prefix, const float* weights) {
  ArtifactSpec spec = filter_spec(testing::read_file(HONE_TEST_KERNELS));
  spec.prefix = prefix;
  spec.weights[0].data = weights;
  return spec;
}

std::string run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  const int code = pclose(pipe);
  return code == 0 ? text : text + "exit code " + std::to_string(code);
}

class StaticLibrary : public ::testing::TestWithParam<const char*> {};

TEST_P(StaticLibrary, links_with_another_into_one_program) {
  const Result<std::string> linker = find_linker(GetParam(), host_machine());
  if (!linker.ok()) GTEST_SKIP() << linker.status().message();
  const Folder folder;
  const float same[3] = {0, 1, 0};
  for (const ArtifactSpec& spec :
       {spec_of("first", testing::kWeights), spec_of("second_net", same)}) {
    const std::string base = folder.file(spec.prefix);
    const Status written = write_static_library(spec, base + ".a", {.linker = *linker});
    ASSERT_TRUE(written.ok()) << written.message();
    ASSERT_TRUE(write_header(spec, base + ".h").ok());
  }
  EXPECT_EQ(folder.num_files(), 4);
  std::ofstream(folder.file("main.c")) << kProgram;
  const std::string build = "cd " + folder.path() + " && ";
  std::vector<const char*> compilers = {"cc -std=c99"};
  if (*linker == *find_linker("", host_machine()))
    compilers.insert(compilers.end(), {"c++ -x c++", "cc -static", "cc -no-pie"});
  for (const char* compiler : compilers) {
    SCOPED_TRACE(compiler);
    EXPECT_EQ(
        run_command(
            build + compiler +
            " -Wall -Werror -include first.h -include second_net.h -o program main.c -x none first.a " +
            "second_net.a -lpthread -lm && ./program"),
        "3 3 4\n");
  }
}

INSTANTIATE_TEST_SUITE_P(linkers, StaticLibrary, ::testing::Values("ld", "ld.lld", "ld.lld-22"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '.' || c == '-') c = '_';
                           return name;
                         });

TEST(static_library, offers_the_interface_only) {
  const Folder folder;
  const std::string path = folder.file("net.a");
  ASSERT_TRUE(write_static_library(spec_of("net", testing::kWeights), path).ok());
  const std::string listing = run_command("nm --extern-only --defined-only " + path);
  EXPECT_NE(listing.find(" T net_create\n"), std::string::npos) << listing;
  EXPECT_NE(listing.find(" T net_abi_version\n"), std::string::npos) << listing;
  for (const char* name : {"hone", "test_"})
    EXPECT_EQ(listing.find(name), std::string::npos) << listing;
}

TEST(static_library, is_the_same_file_for_the_same_spec) {
  const Folder folder;
  const Folder other;
  const ArtifactSpec spec = spec_of("net", testing::kWeights);
  ASSERT_TRUE(write_static_library(spec, folder.file("a.a")).ok());
  ASSERT_TRUE(write_static_library(spec, other.file("b.a")).ok());
  const std::string bytes = testing::read_file(folder.file("a.a"));
  EXPECT_GT(bytes.size(), 1000U);
  EXPECT_EQ(bytes, testing::read_file(other.file("b.a")));
}

TEST(static_library, without_a_kernel_is_refused) {
  const Folder folder;
  ArtifactSpec spec = spec_of("net", testing::kWeights);
  spec.kernel_symbols[0] = "no_such_kernel";
  const Status status = write_static_library(spec, folder.file("net.a"));
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "the model's code lacks the function no_such_kernel");
  EXPECT_EQ(folder.num_files(), 0);
}

// Every field of the headers of sections, damaged: an error or a change, but no crash.
TEST(static_library, damaged_objects_do_no_harm) {
  const Folder folder;
  const std::string object = testing::read_file(HONE_TEST_KERNELS);
  const std::string path = folder.file("kernels.o");
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  int refused = 0;
  for (size_t place = header.e_shoff; place + 4 <= object.size(); place += 8) {
    std::string damaged = object;
    std::memset(damaged.data() + place, 0x7f, 4);
    std::ofstream(path, std::ios::binary) << damaged;
    const Status status = localize_symbols(path, {}, {"test_pad"});
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
  std::ofstream(path, std::ios::binary) << object.substr(0, object.size() / 2);
  EXPECT_FALSE(localize_symbols(path, {}, {}).ok());
}

}  // namespace
}  // namespace hone::artifact
