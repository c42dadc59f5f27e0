#include "hone/backend/gpu/compile_apart.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "hone/backend/keeps_code.h"
#include "hone/base/file.h"

namespace hone::backend::gpu {
namespace {

// All tests of the program have fake_nvrtc_testing.cc as NVRTC and an empty folder for code.
class Environment final : public testing::Environment {
 public:
  void SetUp() override {
    setenv("HONE_NVRTC", HONE_FAKE_NVRTC, 1);
    setenv("HONE_CODE_CACHE", folder().c_str(), 1);
  }
  static std::string folder() {
    static const TempDir parent = TempDir::create().value();
    return parent.file("code");
  }
};
[[maybe_unused]] const auto* const kEnvironment =
    testing::AddGlobalTestEnvironment(new Environment);

// The code has a number of its own and that of the process that made it, and a space.
std::string source_in(const Result<Cubin>& made) {
  return made.ok() ? made->data.substr(made->data.find(' ') + 1) : made.status().message();
}

TEST(compile_apart, code_and_errors_come_from_another_process) {
  const Result<Cubin> made = compile_cuda_apart("good", "sm_80");
  EXPECT_EQ(source_in(made), "good");
  EXPECT_FALSE(made->data.starts_with(std::to_string(getpid()))) << made->data;
  EXPECT_TRUE(made->kernels.empty()) << "this is no cubin";
  EXPECT_EQ(source_in(compile_cuda_apart("FAIL", "sm_80")),
            "CUDA's compiler failed for sm_80: NVRTC_ERROR_COMPILATION: a word that is not known");
}

TEST(compile_apart, code_is_kept_only_where_that_is_wanted) {
  ASSERT_TRUE(compile_cuda_apart("first", "sm_80").ok());
  EXPECT_FALSE(std::filesystem::exists(Environment::folder()));
  const KeepsCode keeps;
  const Result<Cubin> made = compile_cuda_apart("first", "sm_80");
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(compile_cuda_apart("first", "sm_90a").ok());
  EXPECT_FALSE(compile_cuda_apart("FAIL", "sm_80").ok());
  const auto files = [] {
    return std::distance(std::filesystem::directory_iterator(Environment::folder()), {});
  };
  EXPECT_EQ(files(), 2);
  const Result<Cubin> again = compile_cuda_apart("first", "sm_80");
  ASSERT_EQ(source_in(again), "first");
  EXPECT_EQ(again->data, made->data);  // it was compiled once
  EXPECT_EQ(files(), 2);
  // Damaged files are as good as none.
  for (const auto& file : std::filesystem::directory_iterator(Environment::folder()))
    std::filesystem::resize_file(file.path(), 50);
  const Result<Cubin> anew = compile_cuda_apart("first", "sm_80");
  ASSERT_EQ(source_in(anew), "first");
  EXPECT_NE(anew->data, made->data);
}

}  // namespace
}  // namespace hone::backend::gpu
