#include "hone/backend/gpu/compile_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "hone/base/child_processes_testing.h"
#include "hone/base/file.h"
#include "hone/base/thread_pool.h"
#include "hone/base/worker_program.h"

namespace hone::backend::gpu {
namespace {

CompilePoolOptions two_processes() {
  return {.program = find_worker_program("").value(), .arguments = {"--compile-cuda"}, .most = 2};
}

std::string request(const std::string& source) {
  return wire::Writer().put(std::string("sm_80")).put(source).bytes();
}

// Other tests of this process have a pool as well.
class NewChildren {
 public:
  [[nodiscard]] size_t count() const {
    const std::vector<pid_t> now = children_of(getpid());
    return static_cast<size_t>(std::count_if(now.begin(), now.end(), [&](pid_t child) {
      return std::find(before_.begin(), before_.end(), child) == before_.end();
    }));
  }

 private:
  std::vector<pid_t> before_ = children_of(getpid());
};

bool is_soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 30'000 && !condition(); ++i) usleep(1000);
  return condition();
}

TEST(compile_pool, sources_are_compiled_by_as_many_processes_as_ask_at_once) {
  CompilePool pool(two_processes());
  const TempDir folder = TempDir::create().value();
  ThreadPool threads(3);
  std::vector<Result<std::string>> answers(2, error(Code::kInternal, "nothing"));
  // Each waits for the other one.
  threads.parallel_for(2, [&](int64_t i) {
    answers[static_cast<size_t>(i)] =
        pool.compile(request(fmt::format("MEET {} 2", folder.path())));
  });
  for (const auto& answer : answers) ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_NE(*answers[0], *answers[1]);
  EXPECT_EQ(pool.processes(), 2);
  // More callers than processes wait for their turn.
  std::vector<Result<std::string>> more(20, error(Code::kInternal, "nothing"));
  threads.parallel_for(20, [&](int64_t i) {
    more[static_cast<size_t>(i)] = pool.compile(request(std::to_string(i)));
  });
  for (size_t i = 0; i < more.size(); ++i) {
    ASSERT_TRUE(more[i].ok()) << more[i].status().message();
    EXPECT_NE(more[i]->find(fmt::format(" {}", i)), std::string::npos);
  }
  EXPECT_LE(pool.processes(), 2);
}

TEST(compile_pool, a_crash_or_a_hang_costs_one_source) {
  CompilePoolOptions options = two_processes();
  options.compile_seconds = 0.2, options.wait_seconds = 60;
  const NewChildren children;
  CompilePool pool(options);
  const auto crashed = pool.compile(request("CRASH"));
  EXPECT_EQ(crashed.status().code(), Code::kInternal);
  EXPECT_TRUE(crashed.status().message().starts_with(
      "the compiler failed: the worker was killed by signal 11"))
      << crashed.status().message();
  const auto slow = pool.compile(request("SPIN"));
  EXPECT_EQ(slow.status().code(), Code::kUnsupported);
  EXPECT_EQ(slow.status().message(), "the compiler was not done after 0.2 s of CPU time");
  EXPECT_EQ(pool.processes(), 0);
  options.wait_seconds = 0.3;
  CompilePool hasty(options);
  const auto hung = hasty.compile(request("HANG"));
  EXPECT_EQ(hung.status().code(), Code::kUnsupported);
  EXPECT_EQ(hung.status().message(), "the compiler was not done after 0.3 s");
  EXPECT_EQ(hasty.processes(), 0);
  EXPECT_EQ(children.count(), 0U);
  CompilePool patient(two_processes());  // a busy machine may need longer
  EXPECT_TRUE(patient.compile(request("good")).ok());
}

TEST(compile_pool, a_process_that_somebody_kills_is_replaced) {
  CompilePool pool(two_processes());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool.compile(request("good")).ok());
    for (const pid_t child : children_of(getpid())) kill(child, SIGKILL);
  }
}

TEST(compile_pool, processes_end_when_there_is_nothing_to_do) {
  CompilePoolOptions options = two_processes();
  options.idle_seconds = 0.01;
  const NewChildren children;
  CompilePool pool(options);
  ASSERT_TRUE(pool.compile(request("good")).ok());
  EXPECT_TRUE(is_soon([&] { return pool.processes() == 0; }));
  EXPECT_TRUE(is_soon([&] { return children.count() == 0; }));
  EXPECT_TRUE(pool.compile(request("good")).ok());
}

TEST(compile_pool, a_compiler_that_is_not_there_is_said) {
  CompilePoolOptions options = two_processes();
  options.program = "/nonexistent";
  CompilePool pool(options);
  const auto answer = pool.compile(request("good"));
  EXPECT_EQ(answer.status().code(), Code::kIo);
  EXPECT_EQ(pool.processes(), 0);
}

// A process that dies leaves none of those behind that compile for it.
TEST(compile_pool, processes_end_with_the_one_that_started_them) {
  const pid_t owner = fork();
  ASSERT_GE(owner, 0);
  if (owner == 0) {
    CompilePool pool(two_processes());
    (void)pool.compile(request("HANG"));
    _exit(1);
  }
  std::vector<pid_t> compiling;
  EXPECT_TRUE(is_soon([&] { return !(compiling = children_of(owner)).empty(); }));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(is_soon([&] {
    return std::none_of(compiling.begin(), compiling.end(), [](pid_t child) {
      return file_exists(fmt::format("/proc/{}/exe", child));
    });
  }));
}

}  // namespace
}  // namespace hone::backend::gpu
