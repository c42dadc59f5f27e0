#include "hone/base/subprocess.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "hone/base/clock.h"
#include "hone/base/file.h"

namespace hone {
namespace {

SubprocessResult run(const std::vector<std::string>& argv, const SubprocessOptions& options = {}) {
  Result<SubprocessResult> result = run_subprocess(argv, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : SubprocessResult();
}

TEST(subprocess, collects_both_streams_and_the_exit_code) {
  const SubprocessResult result = run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(describe_end(result), "exit code 3");
}

TEST(subprocess, arguments_meet_no_shell) {
  EXPECT_EQ(run({"printf", "%s|", "a b", "$HOME", "*", "';"}).out, "a b|$HOME|*|';|");
}

TEST(subprocess, large_streams_go_both_ways) {
  SubprocessOptions options;
  options.input.assign(3'000'000, 'x');
  options.input += "end";
  EXPECT_EQ(run({"cat"}, options).out, options.input);
}

TEST(subprocess, input_that_nobody_reads_is_no_error) {
  SubprocessOptions options;
  options.input.assign(3'000'000, 'x');
  EXPECT_TRUE(run({"true"}, options).ok());
}

TEST(subprocess, runs_in_the_directory) {
  const Result<TempDir> dir = TempDir::create();
  ASSERT_TRUE(dir.ok());
  SubprocessOptions options;
  options.directory = dir->path();
  EXPECT_EQ(run({"pwd", "-P"}, options).out, dir->path() + "\n");
}

TEST(subprocess, death_by_a_signal_is_a_result) {
  const SubprocessResult result = run({"sh", "-c", "kill -SEGV $$"});
  EXPECT_EQ(result.signal, 11);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(describe_end(result), "signal 11 (segmentation fault)");
}

TEST(subprocess, missing_program) {
  const Result<SubprocessResult> result = run_subprocess({"no_such_program_of_hone"});
  EXPECT_EQ(result.status().code(), Code::kNotFound);
  EXPECT_EQ(result.status().message(),
            "cannot run 'no_such_program_of_hone': no such file or directory");
}

TEST(subprocess, timeout_kills_the_child_and_its_children) {
  const Result<TempDir> dir = TempDir::create();
  ASSERT_TRUE(dir.ok());
  const std::string mark = dir->file("mark");
  SubprocessOptions options;
  options.timeout_seconds = 0.3;
  const double start = real_clock().now_seconds();
  const auto result =
      run_subprocess({"sh", "-c", "(sleep 1; touch " + mark + ") & sleep 100"}, options);
  EXPECT_EQ(result.status().code(), Code::kTimeout);
  EXPECT_EQ(result.status().message(), "'sh' did not end within 0.3 s");
  EXPECT_LT(real_clock().now_seconds() - start, 20);
  real_clock().sleep(1.2);
  EXPECT_FALSE(file_exists(mark));
}

TEST(subprocess, timeout_also_with_closed_output) {
  SubprocessOptions options;
  options.timeout_seconds = 0.3;
  const auto result = run_subprocess({"sh", "-c", "exec >&- 2>&-; sleep 100"}, options);
  EXPECT_EQ(result.status().code(), Code::kTimeout);
}

}  // namespace
}  // namespace hone
