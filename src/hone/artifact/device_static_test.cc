// A static library of a model for a device, in one program with one for CPUs.
#include <gtest/gtest.h>

#include <cstdio>

#include "hone/artifact/device_testing.h"

namespace hone::artifact {
namespace {

using testing::Folder;
using testing::read_file;

constexpr const char* kProgram = R"(
#include <stdio.h>
int main(void) {
  static float x[1000], y[1000], z[1000], positive[1000];
  const void* inputs[] = {x};
  void* outputs_y[] = {y, positive};
  void* outputs_z[] = {z, positive};
  fast* a = NULL;
  slow* b = NULL;
  int rank = 0;
  const int64_t* shape = NULL;
  for (int i = 0; i < 4; ++i) x[i] = (float)(i + 1);
  if (fast_create(&a, 1) != 0 || slow_create(&b, 1) != 0) return puts(fast_last_error(NULL));
  if (fast_run(a, inputs, outputs_y) != 0) return puts(fast_last_error(a));
  if (slow_run(b, inputs, outputs_z) != 0) return 2;
  if (fast_output_shape(a, 1, &rank, &shape) != 0 || rank != 1) return 3;
  printf("%g %g %d %d %d\n", y[2], z[2], (int)shape[0], fast_device(a)[0] != 0, slow_device(b)[0]);
  fast_destroy(a);
  slow_destroy(b);
  return 0;
}
)";

TEST(device_models, are_static_libraries_too) {
  const Folder folder;
  const std::string kernels = read_file(HONE_TEST_KERNELS);
  ArtifactSpec specs[] = {testing::device_spec(testing::DeviceKind::kOpenCl, true, kernels),
                          testing::filter_spec(kernels)};
  specs[0].prefix = "fast";
  specs[1].prefix = "slow";
  for (const ArtifactSpec& spec : specs) {
    const std::string base = folder.file(spec.prefix);
    const Status written = write_static_library(spec, base + ".a");
    ASSERT_TRUE(written.ok()) << written.message();
    ASSERT_TRUE(write_header(spec, base + ".h").ok());
  }
  std::ofstream(folder.file("main.c")) << kProgram;
  const std::string command =
      "cd " + folder.path() +
      " && cc -std=c99 -Wall -Werror -include fast.h -include slow.h -o program main.c fast.a slow.a "
      "-lpthread -lm && ./program > said.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder.file("said.txt"));
  // The products are 1, 4, 9, 4, and x is 1, 2, 3, 4.
  EXPECT_EQ(read_file(folder.file("said.txt")), "16 3 4 1 0\n");
}

}  // namespace
}  // namespace hone::artifact
